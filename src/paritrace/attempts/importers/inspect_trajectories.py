"""The trajectory of an Inspect sample: its tool events in order, and the answers without a call (AT-23)."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from paritrace.attempts.importers.inspect_format import Header, Message, ModelEvent, Sample, ToolEvent
from paritrace.attempts.importers.inspect_samples import attempt_id, task_id, values_of
from paritrace.attempts.origins import Origin
from paritrace.attempts.trace_steps import Call, message_of, steps_of
from paritrace.attempts.traces import Trace
from paritrace.evidence.plain_json import elements, is_array, is_object, members

ATTACHED = "attachment://"  # Inspect keeps long texts once, beside the events
Kind = TypeVar("Kind", bound=Struct)


def trace_of_sample(sample: Sample, plain: Mapping[str, Any], header: Header, origin: Origin) -> Trace:
    """Returns a sample as a trace; a log that kept no events is read from its messages."""
    attached = members(plain.get("attachments"))
    calls = list(_event_calls(elements(plain.get("events")), origin, attached))
    if not calls:
        calls = list(_message_calls(elements(plain.get("messages")), origin, attached))
    scores = ", ".join(f"{name} {value}" for name, value in values_of(sample).items())
    return Trace(
        task_id=task_id(header, sample.id),
        attempt_id=attempt_id(header, sample.id, sample.epoch),
        steps=steps_of(calls),
        origin=origin,
        outcome=scores if sample.error is None else "error",
    )


def _event_calls(events: list[Any], origin: Origin, attached: Mapping[str, Any]) -> Iterable[Call]:
    turn, said = -1, ""
    for index, plain in enumerate(events):
        place = Origin(source=origin.source, member=origin.member, pointer=f"{origin.pointer}/events/{index}")
        match members(plain).get("event"):
            case "model":
                event = _as(plain, ModelEvent)
                message = Message() if event is None else _answer(event)
                turn, said = index, _text(message.content, attached)
                if said and not message.tool_calls:
                    yield message_of(said, turn=turn, origin=place)
            case "tool":
                tool = _as(plain, ToolEvent)
                if tool is not None:
                    yield _call(tool, attached, turn=turn, said=said, origin=place)
                    said = ""
            case _:
                pass


def _as(plain: object, kind: type[Kind]) -> Kind | None:
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError:
        return None


def _answer(event: ModelEvent) -> Message:
    choices = [] if event.output is None else event.output.choices
    return choices[0].message if choices else Message()


def _call(tool: ToolEvent, attached: Mapping[str, Any], *, turn: int, said: str, origin: Origin) -> Call:
    return Call(
        name=tool.function,
        arguments=_opened(tool.arguments, attached),
        turn=turn,
        origin=origin,
        result=tool.error if tool.error is not None else _opened(tool.result, attached),
        has_result=tool.completed is not None or tool.error is not None or bool(tool.result),
        said=said,
    )


def _message_calls(messages: list[Any], origin: Origin, attached: Mapping[str, Any]) -> Iterable[Call]:
    read = [_as(plain, Message) or Message() for plain in messages]
    results = {one.tool_call_id: one.content for one in read if one.role == "tool" and one.tool_call_id is not None}
    for index, message in enumerate(read):
        if message.role != "assistant":
            continue
        place = Origin(source=origin.source, member=origin.member, pointer=f"{origin.pointer}/messages/{index}")
        text = _text(message.content, attached)
        for number, call in enumerate(message.tool_calls or []):
            yield Call(
                name=call.function,
                arguments=_opened(call.arguments, attached),
                turn=index,
                origin=place,
                result=_opened(results.get(call.id), attached),
                has_result=call.id in results,
                said=text if number == 0 else None,
            )
        if not message.tool_calls and text:
            yield message_of(text, turn=index, origin=place)


def _text(content: Any, attached: Mapping[str, Any]) -> str:
    """Returns the text of a message's content, which is a string or a list of parts; other parts are passed over."""
    if is_array(content):
        parts = [members(part) for part in content]
        return "\n".join(str(_opened(part.get("text", ""), attached)) for part in parts if part.get("type") == "text")
    opened = _opened(content, attached)
    return opened if isinstance(opened, str) else ""


def _opened(value: Any, attached: Mapping[str, Any]) -> Any:
    """Returns a value with its attachments in place."""
    if isinstance(value, str) and value.startswith(ATTACHED):
        return attached.get(value.removeprefix(ATTACHED), value)
    if is_object(value):
        return {key: _opened(item, attached) for key, item in value.items()}
    if is_array(value):
        return [_opened(item, attached) for item in value]
    return value
