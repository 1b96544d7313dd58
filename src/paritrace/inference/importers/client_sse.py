"""Recorded OpenAI streaming bodies as requests, by httpx2's reader of server-sent events (IN-15)."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from paritrace.errors import HostError
from paritrace.evidence.ids import Ref
from paritrace.files import LOCAL
from paritrace.inference.context import ClockKind
from paritrace.inference.importers.client_terms import RESPONSE_ID, Outcome
from paritrace.inference.importers.openai_stream import StreamEnd, StreamFacts, StreamReader
from paritrace.inference.importers.text_source import TextSource, head_of
from paritrace.inference.importing import Account, Asked, Events, Imported, Reader, SourceKind
from paritrace.inference.records import Request
from paritrace.inference.vocabulary import LossReason

if TYPE_CHECKING:
    from httpx2 import ServerSentEvent

NAME = "openai-sse"
MOST_EVENT_BYTES = 4 << 20  # of one event: a chunk of a stream has some hundred bytes
BOM = b"\xef\xbb\xbf"
HEADERS = {"content-type": "text/event-stream; charset=utf-8"}
_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


def recognises(path: Path) -> bool:
    """Says whether a file looks like a body of server-sent events."""
    return head_of(path).removeprefix(BOM).lstrip(b"\r\n").startswith(_STARTS)


def open_body(asked: Asked) -> Imported:
    """Opens one streaming body; see `importing`.

    Raises:
        HostError: Refused, `missing_extra` where httpx2 is not installed.
    """
    require_httpx2()
    source = TextSource(asked, reader=NAME)
    return Imported((source.reference("text/event-stream"),), _events(source))


def require_httpx2() -> None:
    """Raises HostError (Refused), `missing_extra`, where httpx2 is not installed."""
    if find_spec("httpx2") is None:
        raise HostError(
            "streams are read by httpx2, which is not installed",
            code="missing_extra",
            fix="pip install 'paritrace[infer]'",
        )


def _events(source: TextSource) -> Events:
    reader = StreamReader()
    too_large = False
    try:
        for event in server_sent_events(LOCAL.iter_chunks(source.path)):
            reader.take(event.data)
    except EventTooLargeError:
        too_large = True
    facts = reader.facts()
    context = source.context(clock=ClockKind.WALL)
    name = facts.response_id or source.path.name
    yield Request(
        context=context,
        event_id=source.event_id("body"),
        request_ref=Ref(source.attachment_id, name),
        backend_request_ref=None if facts.response_id is None else Ref(source.attachment_id, facts.response_id),
        status=status_of(facts).value,
        input_tokens=None if facts.usage is None else facts.usage.input_tokens,
        output_tokens=None if facts.usage is None else facts.usage.output_tokens,
        metadata=stream_metadata(facts),
    )
    if too_large:
        yield source.loss(context, "events", LossReason.INVALID, count=None)
    return Account(
        complete=facts.end is StreamEnd.COMPLETE and not too_large,
        counts={f"events:{carries}": count for carries, count in facts.events.items()},
        limits=tuple(_limits(facts, too_large=too_large)),
    )


def _limits(facts: StreamFacts, *, too_large: bool) -> Iterator[str]:
    yield "a recorded body has no times"
    if facts.why_incomplete:
        yield f"the stream is incomplete: {facts.why_incomplete}"
    if facts.usage is None:
        yield "no usage: how many tokens there were is unknown; a chunk is not a token"
    if too_large:
        yield f"an event is larger than {MOST_EVENT_BYTES >> 20} MiB: nothing behind it is read"


def status_of(facts: StreamFacts) -> Outcome:
    """The outcome that a stream itself shows."""
    match facts.end:
        case StreamEnd.COMPLETE:
            return Outcome.SUCCESSFUL
        case StreamEnd.INCOMPLETE:
            return Outcome.INCOMPLETE
        case StreamEnd.ERROR:
            return Outcome.FAILED


def stream_metadata(facts: StreamFacts) -> dict[str, object]:
    """What is kept of a stream beside the fields of its request."""
    known: dict[str, object] = {"stream": facts.end.value, "events": dict(facts.events)}
    if facts.finish_reasons:
        known["finish_reasons"] = dict(facts.finish_reasons)
    further = {
        RESPONSE_ID: facts.response_id,
        "model": facts.model,
        "why_incomplete": facts.why_incomplete or None,
        "error_type": facts.error_type,
        "cached_input_tokens": facts.usage.cached_input_tokens if facts.usage else None,
        "reasoning_tokens": facts.usage.reasoning_tokens if facts.usage else None,
    }
    return known | {name: value for name, value in further.items() if value is not None}


class EventTooLargeError(Exception):
    """An event beyond MOST_EVENT_BYTES."""


def server_sent_events(chunks: Iterator[bytes]) -> Iterator["ServerSentEvent"]:
    """Yields the events of a body; one that its blank line does not end is none, as the standard says.

    Raises:
        EventTooLargeError: an event is larger than MOST_EVENT_BYTES.
    """
    import httpx2

    asked = httpx2.Request("GET", "http://stored.invalid")  # a response without its request is not read
    body = httpx2.Response(200, headers=HEADERS, content=_without_mark(chunks), request=asked)
    try:
        yield from httpx2.EventSource(body, max_event_size=MOST_EVENT_BYTES)
    except httpx2.SSEError as error:
        raise EventTooLargeError from error


def _without_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(chunks, b"")
    yield first.removeprefix(BOM)
    yield from chunks


READER = Reader(
    name=NAME,
    kind=SourceKind.CLIENT,
    reads="one recorded body of an OpenAI-compatible stream",
    recognises=recognises,
    open=open_body,
)
