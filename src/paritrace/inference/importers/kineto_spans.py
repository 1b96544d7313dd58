"""When an event of a trace began and ended, and what is wrong with what it says of that (IN-10, B-13, B-15)."""

from enum import StrEnum
from typing import NamedTuple

from paritrace.inference.importers.kineto_events import TraceEvent
from paritrace.inference.importers.kineto_times import LARGEST_NS, Times, nanoseconds

_UNFINISHED_NS = -1000  # a duration of -1 microsecond: the profiler's word for an end that was not seen


class TimeFault(StrEnum):
    """Why a time is not known. None of them is mended."""

    NO_START = "no_start"  # no time at all, or one that no clock tells
    AT_ZERO = "at_zero"  # the profiler never wrote its time
    UNFINISHED = "unfinished"  # its end was not seen
    NEGATIVE = "negative"  # it ends before it begins


class Span(NamedTuple):
    """Nanoseconds of the trace's clock. `start_ns` alone is known of what is unfinished."""

    start_ns: int | None
    end_ns: int | None
    fault: TimeFault | None


NO_START = Span(None, None, TimeFault.NO_START)
AT_ZERO = Span(None, None, TimeFault.AT_ZERO)


def span_of(event: TraceEvent, /, *, times: Times) -> Span:
    """Return the span of a whole event (phase X)."""
    start = None if event.ts is None else nanoseconds(event.ts, times=times)
    if start is None:
        return NO_START
    if start == 0:
        return AT_ZERO
    duration = None if event.dur is None else nanoseconds(event.dur, times=times)
    if duration is None or duration == _UNFINISHED_NS or (duration < 0 and start + duration == 0):
        return Span(start, None, TimeFault.UNFINISHED)
    if duration < 0:
        return Span(start, None, TimeFault.NEGATIVE)
    end = start + duration
    if end >= LARGEST_NS:
        times.unusable += 1
        return Span(start, None, TimeFault.UNFINISHED)
    return Span(start, end, None)
