"""What one trace lost, what was read of it, and what it cannot say: counts and sentences (IN-10)."""

from collections.abc import Iterator

from paritrace.inference.identities import derived_id
from paritrace.inference.importers.kineto_categories import Group, group_of
from paritrace.inference.importers.kineto_contexts import TraceContexts, base_time_of, without_base_time
from paritrace.inference.importers.kineto_facts import TraceFacts
from paritrace.inference.importers.kineto_joins import launched, links, steps_of_any_thread
from paritrace.inference.importers.kineto_loss import Losses, Told, losses_of
from paritrace.inference.importers.kineto_spans import TimeFault
from paritrace.inference.importers.kineto_stops import Stop, StopReason
from paritrace.inference.importers.kineto_text import EVENTS, TraceText
from paritrace.inference.importing import Account
from paritrace.inference.records import Loss
from paritrace.inference.vocabulary import LossReason, LossStatus

ACTIVITY_RECORDS = "activity records"
_WARNINGS_TOLD = 5
_MOST_CHARACTERS = 80  # of a name that a limit tells
_STOPS = {
    StopReason.FILE_ENDS: "it ends in the middle",
    StopReason.GZIP_ENDS: "its compressed data lack their end",
    StopReason.GZIP_DAMAGED: "its compressed data are damaged",
    StopReason.CONTROL_CHARACTER: "a string holds a raw control character",
    StopReason.INVALID_JSON: "it is no JSON there",
    StopReason.NOT_A_TRACE: "it is no trace: neither an object nor a list",
    StopReason.TOO_LARGE: "one value is larger than is held in memory",
}
_FAULTS = {
    TimeFault.NO_START: "without a time",
    TimeFault.AT_ZERO: "at time 0, which the profiler writes where it has none",
    TimeFault.UNFINISHED: "unfinished: their end is unknown",
    TimeFault.NEGATIVE: "that end before they begin",
}


def stop_told(stop: Stop, /) -> str:
    """Return in words where and why a trace was read no further."""
    detail = f" ({stop.detail})" if stop.detail else ""
    return f"read up to byte {stop.byte:,} of its text: {_STOPS[stop.reason]}{detail}; {stop.events:,} events before"


def loss_events(text: TraceText, facts: TraceFacts, /, *, contexts: TraceContexts) -> Iterator[Loss]:
    """Yield every loss that the trace tells, or that it tells none, and what could not be read of it."""
    losses = losses_of(text.members)
    told: dict[str, object] = {"record_counts": losses.record_counts}
    for number, one in enumerate(losses.told):
        yield _loss(contexts, one, number=number, metadata=told)
    if losses.status is LossStatus.NOT_REPORTED:
        yield Loss(
            context=contexts.of(""),
            event_id=derived_id("loss", contexts.attachment_id, "not reported"),
            source=contexts.attachment_id,
            what=ACTIVITY_RECORDS,
            reason=LossReason.UNKNOWN,
            status=LossStatus.NOT_REPORTED,
        )
    if text.stop is not None:
        truncated = text.stop.reason in (StopReason.FILE_ENDS, StopReason.GZIP_ENDS)
        yield Loss(
            context=contexts.of(""),
            event_id=derived_id("loss", contexts.attachment_id, "text"),
            source=contexts.attachment_id,
            what="the rest of the trace",
            reason=LossReason.TRUNCATED if truncated else LossReason.INVALID,
            metadata={"told": stop_told(text.stop), "byte_of_text": text.stop.byte},
        )
    for category, count in sorted(facts.categories.items()):
        if group_of(category) is Group.OTHER_DEVICE:
            of = Told(f"device work of category {category}", count, LossReason.UNSUPPORTED)
            yield _loss(contexts, of, number=0, metadata={})


def _loss(contexts: TraceContexts, told: Told, *, number: int, metadata: dict[str, object]) -> Loss:
    return Loss(
        context=contexts.of(""),
        event_id=derived_id("loss", contexts.attachment_id, told.what, number),
        source=contexts.attachment_id,
        what=told.what,
        reason=told.reason,
        status=told.status,
        count=told.count,
        metadata=metadata,
    )


def account_of(text: TraceText, facts: TraceFacts, /) -> Account:
    """Return the account of a trace that has been read; it is complete only where nothing speaks against it."""
    losses = losses_of(text.members)
    odd = text.oddities
    whole = text.stop is None and text.has_events
    whole = whole and not (odd.trailing_commas or odd.repeated_keys or odd.repeated_members)
    return Account(
        complete=whole and losses.status is not LossStatus.REPORTED,
        counts={name: count for name, count in _counts(text, facts) if count is not None},
        limits=tuple(_limits(text, facts, losses)),
        stopped_at_byte=None if text.stop is None else text.stop.byte,
    )


def _counts(text: TraceText, facts: TraceFacts) -> Iterator[tuple[str, int | None]]:
    of = launched(facts)
    yield "events", text.num_events
    yield "x_events", facts.phases["X"]
    for kind, count in _by_kind(facts):
        yield f"device:{kind}", count
    yield "device", len(facts.work)
    yield "launches", len(facts.launches)
    yield "launches_repeated", of.num_repeated
    yield "launches_without_device_work", of.num_unused
    yield "ranges", len(facts.ranges)
    steps = facts.ranges["is_step"] == 1
    yield "profiler_step_threads", len(set(facts.ranges["thread"][steps].tolist()))
    for word, count in links(facts, of).items():
        yield f"in_trace:{word}", count
    for word, count in steps_of_any_thread(facts, of).items():
        yield f"estimate:steps_of_any_thread:{word}", count
    for category, count in sorted(facts.categories.items()):
        group = group_of(category)
        if group in (Group.OTHER_DEVICE, Group.UNKNOWN):
            yield f"not_imported:{category}", count
    for fault, count in sorted(facts.faults.items()):
        yield f"time:{fault}", count
    yield "times_below_ns", facts.times.below_ns or None
    yield "times_unusable", facts.times.unusable or None
    yield "correlation_sentinels", facts.sentinels or None
    yield "base_time_ns", base_time_of(text.members)
    yield "values_not_a_number", text.oddities.no_numbers or None
    yield "events_with_bad_utf8", text.oddities.bad_utf8 or None
    yield "values_no_event", text.oddities.not_objects or None
    yield "fields_of_another_type", text.oddities.odd_fields or None
    yield "keys_repeated", text.oddities.repeated_keys + len(text.oddities.repeated_members) or None
    yield "events_without_phase", facts.phases[""] or None


def _by_kind(facts: TraceFacts) -> list[tuple[str, int]]:
    kinds = facts.work["kind"]
    found = [(name, int((kinds == code).sum())) for code, name in enumerate(facts.kinds.values)]
    return [one for one in found if one[1]]


def _limits(text: TraceText, facts: TraceFacts, losses: Losses) -> Iterator[str]:
    if text.stop is not None:
        yield stop_told(text.stop)
    elif not text.has_events:
        yield "it holds no list of events"
    if text.oddities.trailing_commas:
        yield "a comma stands behind the last event: what wrote it may have been stopped"
    if text.oddities.repeated_keys:
        yield f"{text.oddities.repeated_keys:,} keys stand twice in one object: neither value is read"
    for name in sorted(text.oddities.repeated_members):
        what = "the events of each are read" if name == EVENTS else "neither value is read"
        yield f"{name[:_MOST_CHARACTERS]!r} stands twice beside the events: {what}"
    if losses.status is LossStatus.NOT_REPORTED:
        yield "it does not say whether records were lost"
    for fault, count in sorted(facts.faults.items()):
        yield f"{count:,} events {_FAULTS[fault]}: they are in no extent and in no device time"
    if facts.sentinels:
        yield f"{facts.sentinels:,} pieces of device work have a correlation id that is none (0, -1, 2^32-1 or empty)"
    if base_time_of(text.members) is None:
        yield without_base_time(text.members)
    yield from (f"the profiler says: {line}" for line in losses.warnings[:_WARNINGS_TOLD])
