"""Gathers in one pass what is said of a trace: what its events are, and the columns of its joins."""

from collections import Counter

from paritrace.inference.columns import UNKNOWN, Codes, Ids, Table
from paritrace.inference.execution_ranges import RangeKind, kind_of_range
from paritrace.inference.importers.kineto_categories import DEVICE_KINDS, LAUNCH_KINDS, Group, group_of
from paritrace.inference.importers.kineto_events import Id, TraceEvent
from paritrace.inference.importers.kineto_spans import Span, TimeFault, span_of
from paritrace.inference.importers.kineto_times import Times
from paritrace.inference.vocabulary import ActivityKind

SENTINELS = frozenset(("", "0", "-1", "4294967295"))
Thread = tuple[str, str]  # process and thread, as the trace writes them


def text_of(value: Id, /) -> str:
    """Return an id as text; "" where there is none."""
    return "" if value is None else str(value)


def device_of(event: TraceEvent, /) -> str:
    """Return the ordinal of the device that an event of device work names, else its process, which then is one."""
    named = None if event.args is None else event.args.device
    return text_of(event.pid if named is None else named)


def correlation_of(event: TraceEvent, /) -> str:
    """Return the correlation id as it was written, "" where there is none."""
    return "" if event.args is None else text_of(event.args.correlation)


class TraceFacts:
    """What a trace holds. Call `see` with every event; rows of the tables stand in the order of the file.

    Times are nanoseconds of the trace's clock, `UNKNOWN` where it tells none.
    """

    def __init__(self, *, pattern: str | None = None) -> None:
        self._pattern = pattern
        self._groups: dict[str | None, Group] = {}
        self.num_events = 0
        self.phases: Counter[str] = Counter()
        self.categories: Counter[str] = Counter()  # of whole events (phase X)
        self.times = Times()
        self.faults: Counter[TimeFault] = Counter()  # of whole events
        self.device_faults: Counter[TimeFault] = Counter()  # of device work among them
        self.threads: Codes[Thread] = Codes()
        self._threads: dict[tuple[Id, Id], int] = {}  # as they are written, before they are text
        self.devices: Codes[str] = Codes()
        self.names: Codes[str] = Codes()
        self.ids = Ids()
        self.kinds: Codes[ActivityKind] = Codes()
        self.launches = Table("id", "thread", "start", "end", "kind", "name", "place")
        self.work = Table("id", "device", "stream", "start", "end", "kind", "name")
        self.host = Table("thread", "start", "end")
        self.ranges = Table("thread", "start", "end", "name", "is_step")
        self.annotations = Table("thread", "start", "end", "name")
        self.device_annotations: Counter[str] = Counter()
        self.streams: Codes[tuple[str, str]] = Codes()
        self.sentinels = 0  # device work whose correlation id is no id

    def see(self, event: TraceEvent, /) -> tuple[Group, Span | None]:
        """Take an event in; return its group and, of a whole event, its span."""
        self.num_events += 1
        self.phases[event.ph] += 1
        if event.ph != "X":
            return Group.BESIDE, None
        category = event.cat
        group = self._groups.get(category)
        if group is None:
            group = self._groups[category] = group_of(category or "")
        self.categories[category or ""] += 1
        span = span_of(event, times=self.times)
        if span.fault is not None:
            self.faults[span.fault] += 1
        if group is Group.DEVICE:
            self._see_work(event, span)
        elif group is Group.LAUNCH:
            self._see_launch(event, span)
        elif group is Group.RANGE:
            self._see_range(event, span)
        elif group is Group.DEVICE_RANGE:
            self.device_annotations[event.name] += 1
        elif group is Group.HOST:
            self._see_host(event, span)
        return group, span

    def _see_work(self, event: TraceEvent, span: Span) -> None:
        if span.fault is not None:
            self.device_faults[span.fault] += 1
        device = device_of(event)
        stream = text_of(None if event.args is None else event.args.stream) or text_of(event.tid)
        correlation = correlation_of(event)
        sentinel = correlation in SENTINELS
        self.sentinels += sentinel
        self.work.add(
            (
                UNKNOWN if sentinel else self.ids[correlation],
                self.devices[device],
                self.streams[device, stream],
                UNKNOWN if span.start_ns is None else span.start_ns,
                UNKNOWN if span.end_ns is None else span.end_ns,
                self.kinds[DEVICE_KINDS[(event.cat or "").lower()]],
                self.names[event.name],
            )
        )

    def _see_launch(self, event: TraceEvent, span: Span) -> None:
        thread = self._see_host(event, span)
        correlation = correlation_of(event)
        if correlation not in SENTINELS:
            start = UNKNOWN if span.start_ns is None else span.start_ns
            end = UNKNOWN if span.end_ns is None else span.end_ns
            kind = self.kinds[LAUNCH_KINDS[(event.cat or "").lower()]]
            place = self.num_events - 1
            self.launches.add((self.ids[correlation], thread, start, end, kind, self.names[event.name], place))

    def _see_range(self, event: TraceEvent, span: Span) -> None:
        thread = self._see_host(event, span)
        if span.start_ns is None or span.end_ns is None:
            return
        name = self.names[event.name]
        self.annotations.add((thread, span.start_ns, span.end_ns, name))
        kind = kind_of_range(event.name, pattern=self._pattern)
        if kind is not None:
            self.ranges.add((thread, span.start_ns, span.end_ns, name, int(kind is RangeKind.PROFILER_STEP)))

    def _see_host(self, event: TraceEvent, span: Span) -> int:
        thread = self._threads.get((event.pid, event.tid))
        if thread is None:
            thread = self._threads[event.pid, event.tid] = self.threads[text_of(event.pid), text_of(event.tid)]
        if span.start_ns is not None and span.end_ns is not None:
            self.host.add((thread, span.start_ns, span.end_ns))
        return thread
