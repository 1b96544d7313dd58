"""One event of inference evidence as a slice or an instant: its track, its name, its arguments (IN-19): pure."""

from collections.abc import Iterator
from typing import assert_never

from paritrace.evidence.ids import Ref
from paritrace.inference.records import Activity, Event, Iteration, Loss, Request, Stage
from paritrace.inference.vocabulary import Domain, LossStatus
from paritrace.reports.traces.events import Arguments, Value
from paritrace.reports.traces.events import Event as Shown
from paritrace.reports.traces.inference_rows import Said, Timed

LINKED, UNLINKED = "linked", "not linked"
NOT_DERIVED = "no link was derived: paritrace infer link RUN"
DISAGREE = "several links disagree"
_LOST = {
    LossStatus.REPORTED: "lost",
    LossStatus.ZERO_REPORTED: "none lost, as told",
    LossStatus.NOT_REPORTED: "not told whether lost",
}


def path_of(event: Timed, said: tuple[Said, ...], /) -> tuple[str, ...]:
    """Returns the track of an event: of a party, of a device and stream, or of a host's thread."""
    match event:
        case Request():
            return ("requests", _party(event))
        case Stage():
            return ("stages", _party(event))
        case Iteration():
            thread = () if event.thread_id is None else (f"thread {event.thread_id}",)
            return ("iterations", _party(event), *thread)
        case Activity():
            return _work(event, said)
        case _ as never:
            assert_never(never)


def event_of(event: Timed, said: tuple[Said, ...], /, *, offset: int, flows: tuple[int, ...]) -> Shown:
    """Returns the slice of an event, `offset` ns later than its own clock says; -1 for a time that is not known."""
    start, end = event.start_ns, event.end_ns
    return Shown(
        start_ns=-1 if start is None else start + offset,
        duration_ns=-1 if start is None or end is None else end - start,
        name=_name(event),
        category=str(event.__struct_config__.tag),
        words=tuple(_words(event, said)),
        arguments=tuple(_arguments(event)),
        flows=flows,
    )


def loss_event(loss: Loss, /) -> Shown:
    """Returns a loss as an instant; no source says when it lost something, so that it stands at 0."""
    told: list[tuple[str, Value]] = [("reason", loss.reason.value), ("status", loss.status.value)]
    told += [("what", loss.what), ("source", loss.source), ("time", "not recorded"), ("event_id", loss.event_id)]
    if loss.count is not None:
        told.append(("count", loss.count))
    if loss.first_byte is not None and loss.num_bytes is not None:
        told += [("first_byte", loss.first_byte), ("num_bytes", loss.num_bytes)]
    return Shown(
        -1, -1, f"{_LOST[loss.status]}: {loss.what}: {loss.reason.value}", category="loss", arguments=tuple(told)
    )


def said_of(event: Activity, said: tuple[Said, ...], /) -> Said:
    """Returns the one thing that is said of an activity: by links, else by its collector's claim."""
    if len(said) > 1:
        return Said(None, reason=DISAGREE)
    if said:
        return said[0]
    if event.iteration_ref is not None:
        return Said(event.iteration_ref, basis="claimed by its collector")
    return Said(None, reason=NOT_DERIVED)


def _work(event: Activity, said: tuple[Said, ...]) -> tuple[str, ...]:
    match event.domain:
        case Domain.GPU:
            device = event.device_id or event.context.facts.device_uuid or "not told"
            stream = "stream not told" if event.stream_id is None else f"stream {event.stream_id}"
            linked = UNLINKED if said_of(event, said).iteration is None else LINKED
            return ("devices", f"device {device}", f"{stream}: {linked}")
        case Domain.RUNTIME | Domain.CPU:
            return ("host", f"thread {event.thread_id or 'not told'}")
        case Domain.UNKNOWN:
            return ("work of an unknown place", _party(event))
        case _ as never:
            assert_never(never)


def _party(event: Event) -> str:
    facts = event.context.facts
    return facts.source if facts.producer_id == facts.source else f"{facts.source} ({facts.producer_id})"


def _name(event: Timed) -> str:
    match event:
        case Request():
            return f"request {event.request_ref.id}"
        case Stage():
            return event.name
        case Iteration():
            return event.anchor or f"iteration {event.iteration_ref.id}"
        case Activity():
            return event.name or event.kind
        case _ as never:
            assert_never(never)


def _words(event: Timed, said: tuple[Said, ...]) -> Iterator[tuple[str, str]]:
    """Arguments of few values."""
    yield "provenance", event.context.facts.provenance.value
    yield "session", event.context.facts.session_id
    if isinstance(event, Request) and event.status is not None:
        yield "status", event.status
    if isinstance(event, Activity):
        one = said_of(event, said)
        yield "kind", event.kind
        yield "domain", event.domain.value
        if one.iteration is None:
            yield "not_linked", one.reason
        else:
            yield "iteration", one.iteration.id
            yield "iteration_of", one.iteration.producer_id
            yield "basis", one.basis


def _arguments(event: Timed) -> Arguments:
    told: dict[str, Value | None] = {"event_id": event.event_id}
    match event:
        case Request():
            told |= {"request": event.request_ref.id, "attempt": _id(event.attempt_ref)}
            told |= {"input_tokens": event.input_tokens, "output_tokens": event.output_tokens}
            told |= {"kv_bytes": event.kv_bytes}
        case Stage():
            told |= {"request": _id(event.request_ref)}
            told |= {"iteration": _id(event.iteration_ref)}
        case Iteration():
            told |= {"iteration": event.iteration_ref.id, "batch": _id(event.batch_ref)}
        case Activity():
            told |= {"correlation": event.runtime_correlation_id, "cuda_correlation": event.cuda_correlation_id}
            told |= {"graph": event.graph_id}
            told |= {"busy_ns": sum(length for _, length in event.intervals)} if event.intervals else {}
        case _ as never:
            assert_never(never)
    if event.start_ns is None and event.end_ns is not None:
        told["end_ns"] = event.end_ns
    return tuple((name, value) for name, value in told.items() if value is not None)


def _id(ref: Ref | None) -> str | None:
    return None if ref is None else ref.id
