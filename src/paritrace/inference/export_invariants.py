"""What an Nsight Systems export says against itself: its tables, losses, launches, ids, times (IN-11, IN-26).

The invariants have the names that those of other traces have. Events are gone through once; about forty bytes of each
piece of device work are kept.
"""

from collections.abc import Iterator

import numpy as np

from paritrace.inference.columns import Codes, Numbers, Table, listed
from paritrace.inference.importing import Account
from paritrace.inference.link_keys import SENTINELS
from paritrace.inference.records import Activity, ClockAlignment, Loss, Observation
from paritrace.inference.trace_invariants import Held, TraceInvariant, judged, overlaps, unknown
from paritrace.inference.vocabulary import Domain, LossReason, LossStatus

_NO_WORK = "it holds no device work"
_UNREAD = "not read (table"
_OF_THE_READER = frozenset((LossReason.NO_TIME, LossReason.INVALID))


class ExportFacts:
    """What is gathered of an export's events."""

    def __init__(self) -> None:
        self.work = Table("stream", "start", "end")
        self.streams: Codes[tuple[str, str]] = Codes()
        self.wanted: dict[tuple[int | None, str], int] = {}  # process and id of device work -> how much of it
        self.launched: set[tuple[int | None, str]] = set()
        self.num_work = self.sentinels = self.untimed = 0
        self.has_clock = False
        self.losses: list[Loss] = []

    def see(self, event: Observation, /) -> None:
        """Take an event in."""
        if isinstance(event, Activity):
            self._see_activity(event)
        elif isinstance(event, ClockAlignment):
            self.has_clock = True
        elif isinstance(event, Loss):
            self.losses.append(event)

    def _see_activity(self, event: Activity) -> None:
        correlation = event.cuda_correlation_id or ""
        key = (event.context.facts.pid, correlation)
        if event.domain is Domain.RUNTIME:
            self.launched.add(key)
            return
        self.num_work += 1
        if correlation in SENTINELS:
            self.sentinels += 1
        else:
            self.wanted[key] = self.wanted.get(key, 0) + 1
        if event.start_ns is None or event.end_ns is None:
            self.untimed += 1
            return
        stream = self.streams[event.device_id or "", event.stream_id or ""]
        self.work.add((stream, event.start_ns, event.end_ns))


def export_invariants(facts: ExportFacts, account: Account, /) -> Iterator[TraceInvariant]:
    """Yield the invariants of an export that has been read."""
    yield _whole(facts)
    yield _tables(account)
    yield _lossless(facts)
    yield _launched(facts, account)
    yield _ids(facts)
    yield _timed(facts)
    yield _in_turn(facts)
    yield _base(facts)


def _whole(facts: ExportFacts) -> TraceInvariant:
    told = [str(one.metadata.get("told", "")) for one in facts.losses if one.what == "the rest of the trace"]
    return judged(("trace.whole", "the trace is read to its end"), len(told), facts=tuple(told))


def _tables(account: Account) -> TraceInvariant:
    unread = tuple(one for one in account.limits if _UNREAD in one)
    said = unread or tuple(one for one in account.limits if "(table " in one or "not recorded" in one)
    return judged(("trace.tables", "every table is of a version that is known"), len(unread), facts=said)


def _lossless(facts: ExportFacts) -> TraceInvariant:
    words = ("trace.no_loss", "the profiler says that it lost nothing")
    told = [one for one in facts.losses if one.reason not in _OF_THE_READER and one.what != "the rest of the trace"]
    lost = [one for one in told if one.status is LossStatus.REPORTED]
    if not lost and not any(one.status is LossStatus.ZERO_REPORTED for one in told):
        return unknown(words, "its diagnostics do not say whether events were lost")
    return judged(words, len(lost), facts=tuple(one.what for one in lost))


def _launched(facts: ExportFacts, account: Account) -> TraceInvariant:
    words = ("device.has_launch", "all device work has a launch record")
    if not facts.num_work:
        kernels = next((one for one in account.limits if one.startswith("kernels: ")), _NO_WORK)
        return unknown(words, kernels, status=Held.NOT_CHECKABLE if "not re" in kernels else Held.NOT_APPLICABLE)
    if not facts.launched and not account.counts.get("launches"):
        return unknown(words, "no call of the runtime was recorded")
    without = sum(count for key, count in facts.wanted.items() if key not in facts.launched)
    return judged(words, without, facts=(f"{without:,} of {facts.num_work:,} pieces of device work",))


def _ids(facts: ExportFacts) -> TraceInvariant:
    words = ("device.ids", "correlation ids are ids")
    if not facts.num_work:
        return unknown(words, _NO_WORK, status=Held.NOT_APPLICABLE)
    return judged(words, facts.sentinels, facts=(f"{facts.sentinels:,} of {facts.num_work:,} pieces of device work",))


def _timed(facts: ExportFacts) -> TraceInvariant:
    words = ("times.known", "every event has a time")
    return judged(words, facts.untimed, facts=(f"{facts.untimed:,} of {facts.num_work:,} pieces of device work",))


def _in_turn(facts: ExportFacts) -> TraceInvariant:
    words = ("device.in_turn", "work of one stream runs in turn")
    if not facts.num_work:
        return unknown(words, _NO_WORK, status=Held.NOT_APPLICABLE)
    owners, start, end = facts.work["stream"], facts.work["start"], facts.work["end"]
    counts = {code: _overlaps(owners == code, start, end) for code in listed(np.unique(owners))}
    streams = facts.streams.values
    worst = sorted((code for code, count in counts.items() if count), key=lambda code: -counts[code])
    names = tuple(f"device {streams[code][0]} stream {streams[code][1]}" for code in worst)
    total = sum(counts.values())
    return judged(words, total, facts=(f"{total:,} of {facts.num_work:,} pieces of device work",), names=names)


def _overlaps(mine: "np.ndarray[tuple[int], np.dtype[np.bool_]]", start: Numbers, end: Numbers) -> int:
    return overlaps(start[mine], end[mine], nested=False)


def _base(facts: ExportFacts) -> TraceInvariant:
    words = ("times.base", "the trace gives its base time")
    if facts.has_clock:
        return judged(words, 0)
    return unknown(words, "it gives no base time: no common time base with other traces")
