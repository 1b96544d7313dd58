"""What a trace says against itself: whole, nothing lost, work and its launches both there (IN-26; B-10 to B-17).

A rule. Every invariant passes, fails or is not checkable; a real trace may break one without anything being wrong with
the program, so that each says what it counted.
"""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

import numpy as np
from msgspec import Struct

from paritrace.inference.columns import UNKNOWN, Numbers, Table, listed
from paritrace.inference.importers.kineto_account import stop_told
from paritrace.inference.importers.kineto_categories import Group, group_of
from paritrace.inference.importers.kineto_contexts import BASE_TIME, base_time_of, without_base_time
from paritrace.inference.importers.kineto_facts import TraceFacts
from paritrace.inference.importers.kineto_joins import NO_LAUNCH, SEVERAL, Launched, launched, partial_overlaps
from paritrace.inference.importers.kineto_loss import Losses, losses_of
from paritrace.inference.importers.kineto_spans import TimeFault
from paritrace.inference.importers.kineto_text import TraceText
from paritrace.inference.vocabulary import LossReason, LossStatus

LAUNCHING = ("Launch", "Memcpy", "Memset")  # in the names of calls that make device work; other calls make none
NAMES_KEPT = 8
_NO_WORK = "it holds no device work"


class Held(StrEnum):
    """How an invariant of a trace came out."""

    PASS = "pass"  # noqa: S105  a word of the vocabulary
    FAIL = "fail"
    NOT_CHECKABLE = "not_checkable"
    NOT_APPLICABLE = "not_applicable"


class TraceInvariant(Struct, frozen=True):
    """One invariant of a trace.

    Attributes:
        name: it in words, as it should be.
        facts: what was counted.
        names: what it concerns, the most frequent first; `total`: how many names, without any how many events.
        reason: why it could not be checked.
    """

    id: str
    status: Held
    name: str
    facts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    total: int = 0
    reason: str = ""


def trace_invariants(text: TraceText, facts: TraceFacts, /) -> Iterator[TraceInvariant]:
    """Yield the invariants of a trace that has been read."""
    losses, of = losses_of(text.members), launched(facts)
    others = {name: count for name, count in facts.categories.items() if group_of(name) is Group.OTHER_DEVICE}
    yield _whole(text)
    yield _values(text)
    yield _lossless(losses)
    yield _all_read(others)
    yield _work_launched(facts, of, others=others)
    yield _launches_worked(facts, others=others)
    yield _ids_are_ids(facts)
    yield _ids_once(facts, of)
    yield _annotations(facts)
    yield _timed(facts)
    yield _finished(facts)
    yield _nested(facts)
    yield _streams(facts)
    yield _base(text)


def judged(
    words: tuple[str, str], total: int, /, *, facts: tuple[str, ...] = (), names: tuple[str, ...] = ()
) -> TraceInvariant:
    """Return an invariant by its id and words: it fails where `total` counts anything."""
    status = Held.FAIL if total else Held.PASS
    return TraceInvariant(words[0], status, words[1], facts, names[:NAMES_KEPT], len(names) or total)


def unknown(words: tuple[str, str], reason: str, /, *, status: Held = Held.NOT_CHECKABLE) -> TraceInvariant:
    """Return an invariant that could not be checked, or speaks of nothing that is there."""
    return TraceInvariant(words[0], status, words[1], reason=reason)


def _whole(text: TraceText) -> TraceInvariant:
    words = ("trace.whole", "the trace is read to its end")
    told: list[str] = [] if text.stop is None else [stop_told(text.stop)]
    if text.oddities.trailing_commas:
        told.append("a comma stands behind the last event: what wrote it may have been stopped")
    if text.stop is None and not text.has_events:
        told.append("it holds no list of events")
    return judged(words, len(told), facts=tuple(told) or (f"{text.num_events:,} events",))


def _values(text: TraceText) -> TraceInvariant:
    words = ("trace.values", "every value can be read")
    odd = text.oddities
    counted = {
        "bare NaN or infinity: unavailable": odd.no_numbers,
        "events with bytes that are no UTF-8": odd.bad_utf8,
        "values among the events that are no events": odd.not_objects,
        "fields of another type than a trace's": odd.odd_fields,
        "keys that stand twice in one object: neither value is read": odd.repeated_keys + len(odd.repeated_members),
    }
    facts = tuple(f"{count:,} {what}" for what, count in counted.items() if count)
    return judged(words, sum(counted.values()), facts=facts)


def _lossless(losses: Losses) -> TraceInvariant:
    words = ("trace.no_loss", "the profiler says that it lost nothing")
    if losses.status is LossStatus.NOT_REPORTED:
        return unknown(words, "the trace does not say whether records were lost")
    lost = [one for one in losses.told if one.count and one.reason is not LossReason.BLOCKLISTED]
    facts = tuple(f"{one.what} = {one.count:,}" for one in lost) or (losses.record_counts,)
    return judged(words, sum(one.count for one in lost), facts=(*facts, *losses.warnings[:1]))


def _all_read(others: dict[str, int]) -> TraceInvariant:
    words = ("trace.devices_read", "work of every device is read")
    if others:
        told = ", ".join(f"{name} ({count:,})" for name, count in sorted(others.items()))
        return unknown(words, f"work of these categories is counted and not read: {told}")
    return judged(words, 0)


def _work_launched(facts: TraceFacts, of: Launched, *, others: dict[str, int]) -> TraceInvariant:
    words = ("device.has_launch", "all device work has a launch record")
    if not len(facts.work):
        return _nothing(words, others)
    if not len(facts.launches):
        return unknown(words, "no call of the runtime was recorded")
    without = (of.places == NO_LAUNCH) | (of.places == SEVERAL)
    total = int(without.sum())
    said = (f"{total:,} of {len(of.places):,} pieces of device work",)
    return judged(words, total, facts=said, names=_most(facts, facts.work["name"][without]))


def _launches_worked(facts: TraceFacts, *, others: dict[str, int]) -> TraceInvariant:
    words = ("launch.has_work", "every launch has device work")
    names = facts.names.values
    launching = [code for code, name in enumerate(names) if any(part in name for part in LAUNCHING)]
    of_launching = np.isin(facts.launches["name"], launching)
    if not of_launching.any():
        none = "no call that launches was recorded" if len(facts.work) else _NO_WORK
        return _nothing(words, others, why=none)
    without = of_launching & ~np.isin(facts.launches["id"], facts.work["id"])
    total = int(without.sum())
    said = (f"{total:,} of {int(of_launching.sum()):,} launches, copies and sets",)
    return judged(words, total, facts=said, names=_most(facts, facts.launches["name"][without]))


def _nothing(words: tuple[str, str], others: dict[str, int], *, why: str = _NO_WORK) -> TraceInvariant:
    if others:
        return unknown(words, f"work of {', '.join(sorted(others))} is not read")
    return unknown(words, why, status=Held.NOT_APPLICABLE)


def _ids_are_ids(facts: TraceFacts) -> TraceInvariant:
    words = ("device.ids", "correlation ids are ids")
    if not len(facts.work):
        return unknown(words, _NO_WORK, status=Held.NOT_APPLICABLE)
    said = (f"{facts.sentinels:,} of {len(facts.work):,} pieces of device work",)
    return judged(words, facts.sentinels, facts=said)


def _ids_once(facts: TraceFacts, of: Launched) -> TraceInvariant:
    words = ("launch.ids_unique", "no two launches have one id")
    return judged(words, of.num_repeated, facts=(f"{of.num_repeated:,} of {len(facts.launches):,} launches",))


def _annotations(facts: TraceFacts) -> TraceInvariant:
    words = ("annotations.on_device", "annotations have their record of the device")
    names = facts.names.values
    here = Counter(names[code] for code in listed(facts.annotations["name"]))
    paired = {name: count for name, count in here.items() if facts.device_annotations[name]}
    if not paired:
        reason = "no annotation has a record of the device: whether they were collected is not known"
        return unknown(words, reason, status=Held.NOT_CHECKABLE if here else Held.NOT_APPLICABLE)
    missing = {name: count - facts.device_annotations[name] for name, count in paired.items()}
    lacking = {name: count for name, count in missing.items() if count > 0}
    total, expected = sum(lacking.values()), sum(paired.values())
    said = (f"{total:,} of {expected:,} annotations whose name has a record of the device elsewhere",)
    return judged(words, total, facts=said, names=tuple(sorted(lacking, key=lambda name: -lacking[name])))


def _timed(facts: TraceFacts) -> TraceInvariant:
    words = ("times.known", "every event has a time")
    at_zero, without = facts.faults[TimeFault.AT_ZERO], facts.faults[TimeFault.NO_START]
    told: list[str] = []
    if at_zero:
        told.append(f"{at_zero:,} events at time 0, which are in no extent and in no device time")
    if without:
        told.append(f"{without:,} events without a time that can be read")
    extent = _extent(facts)
    if extent is not None:
        told.append(f"the others lie within {extent / 1e9:.3f} s")
    return judged(words, at_zero + without, facts=tuple(told))


def _extent(facts: TraceFacts) -> int | None:
    """From the first start to the last end of host and device events, in nanoseconds."""
    starts = [column[column != UNKNOWN] for column in (facts.host["start"], facts.work["start"])]
    ends = [column[column != UNKNOWN] for column in (facts.host["end"], facts.work["end"])]
    start, end = np.concatenate(starts), np.concatenate(ends)
    return int(end.max() - start.min()) if len(start) and len(end) else None


def _finished(facts: TraceFacts) -> TraceInvariant:
    words = ("times.finished", "every event has an end")
    unfinished, negative = facts.faults[TimeFault.UNFINISHED], facts.faults[TimeFault.NEGATIVE]
    told = [f"{unfinished:,} unfinished: their end is unknown"] if unfinished else []
    told += [f"{negative:,} end before they begin"] if negative else []
    return judged(words, unfinished + negative, facts=tuple(told))


def _nested(facts: TraceFacts) -> TraceInvariant:
    words = ("times.nested", "events of one thread nest")
    total, names = _crossing(facts.host, "thread", nested=True)
    threads = facts.threads.values
    said = tuple(f"process {threads[code][0]} thread {threads[code][1]}" for code in names)
    return judged(words, total, facts=(f"{total:,} of {len(facts.host):,} events",), names=said)


def _streams(facts: TraceFacts) -> TraceInvariant:
    words = ("device.in_turn", "work of one stream runs in turn")
    if not len(facts.work):
        return unknown(words, _NO_WORK, status=Held.NOT_APPLICABLE)
    total, names = _crossing(facts.work, "stream", nested=False)
    streams = facts.streams.values
    said = tuple(f"device {streams[code][0]} stream {streams[code][1]}" for code in names)
    return judged(words, total, facts=(f"{total:,} of {len(facts.work):,} pieces of device work",), names=said)


def _crossing(table: Table, owner: str, *, nested: bool) -> tuple[int, list[int]]:
    """Return how many spans of one owner cross (or, not `nested`, overlap at all), and the owners, the worst first."""
    owners, start, end = table[owner], table["start"], table["end"]
    known = (start != UNKNOWN) & (end != UNKNOWN)
    counts: Counter[int] = Counter()
    for code in listed(np.unique(owners[known])):
        mine = known & (owners == code)
        counts[code] = overlaps(start[mine], end[mine], nested=nested)
    return counts.total(), [code for code, count in counts.most_common() if count]


def overlaps(start: Numbers, end: Numbers, /, *, nested: bool) -> int:
    """Return how many spans begin inside another one, `nested`: and end outside of it."""
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    overlapping = start[1:] < reached[:-1]
    if not nested:
        return int(overlapping.sum())
    if not overlapping.any():
        return 0
    return partial_overlaps(zip(listed(start), listed(end), strict=True))


def _base(text: TraceText) -> TraceInvariant:
    words = ("times.base", "the trace gives its base time")
    base = base_time_of(text.members)
    if base is not None:
        return judged(words, 0, facts=(f"{BASE_TIME} = {base}",))
    return unknown(words, without_base_time(text.members))


def _most(facts: TraceFacts, codes: Numbers) -> tuple[str, ...]:
    names = facts.names.values
    return tuple(names[code] for code, _ in Counter(listed(codes)).most_common())
