"""Traces that the tests look at: events of two ranks, written by the product."""

from collections.abc import Sequence
from pathlib import Path

from paritrace.files import LOCAL
from paritrace.reports.formats import Cut
from paritrace.reports.traces.events import Event, Tally
from paritrace.reports.traces.writing import Of, RankTrace

Placed = tuple[tuple[str, ...], Event]


def write(path: Path, rank: int, calls: Sequence[Placed], *, cut: Cut = Cut()) -> Tally:  # noqa: B008  frozen
    """The trace of one rank of one source; of an event without a duration an instant."""
    with LOCAL.replacing(path) as sink:
        trace = RankTrace(Of("source", rank, zero_unix_ns=1_700_000_000_000_000_137), sink, cut=cut)
        for place, event in calls:
            trace.call(place, event, step=0)
        return trace.close()


def call(number: int, *, start: int, duration: int, flow: int = 0) -> Event:
    return Event(
        start_ns=start,
        duration_ns=duration,
        name=f"call {number % 7}",
        category="op",
        file="train.py",
        function="step",
        line=number % 50,
        arguments=(("record_id", number), ("phase", "forward"), ("in x", f"float32[2, 3] {number:016x}")),
        flows=(flow,) if flow else (),
    )
