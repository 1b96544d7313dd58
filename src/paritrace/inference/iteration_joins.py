"""Which steps of a trace are which iterations of a log, over the events of one artifact (IN-12).

A rule; no event changes. Every trace's ranges are held against every engine of every log: which engine a trace is of,
nobody says. Where ranges of one trace join iterations of several engines, the joins stand beside each other and none is
chosen.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from paritrace.evidence.ids import Ref
from paritrace.inference.execution_ranges import Scheduled, scheduled_in
from paritrace.inference.range_correspondence import RangesJoined, join_ranges
from paritrace.inference.records import AnyEvent, Iteration


class StepJoin(Struct, frozen=True):
    """One trace's ranges against one engine's log.

    Attributes:
        trace: the attachment of the trace, and the process of its ranges.
        engine: the producer of the log's iterations, and the engine's prefix with its restarts counted.
        pairs: the range and the iteration of each step that is one.
        ranges, iterations: how many each side holds.
        undetermined: ranges that have no iteration, by why.
        in_order: how many more stand in equal order: an estimate.
        by_requests_only: the ranges tell no tokens.
    """

    trace: tuple[str, int | None]
    engine: tuple[str, str]
    pairs: tuple[tuple[Ref, Ref], ...]
    ranges: int
    iterations: int
    undetermined: dict[str, int]
    in_order: int
    by_requests_only: bool


class _Step(NamedTuple):
    order: int
    ref: Ref
    scheduled: Scheduled


def step_joins(events: Iterable[AnyEvent], /) -> tuple[StepJoin, ...]:
    """Return every trace with such ranges against every engine that logged its iterations."""
    traces: dict[tuple[str, int | None], list[_Step]] = {}
    engines: dict[tuple[str, str], list[_Step]] = {}
    for event in events:
        if not isinstance(event, Iteration):
            continue
        if event.anchor is not None:
            _take_range(event, traces)
        else:
            _take_logged(event, engines)
    return tuple(
        _joined(trace, sorted(ranges), engine, sorted(logged))
        for trace, ranges in sorted(traces.items(), key=lambda one: (one[0][0], str(one[0][1])))
        for engine, logged in sorted(engines.items())
    )


def _take_range(event: Iteration, traces: dict[tuple[str, int | None], list[_Step]]) -> None:
    scheduled = scheduled_in(event.anchor or "")
    if scheduled is not None and event.start_ns is not None and event.trace_attachment_id is not None:
        key = (event.trace_attachment_id, event.context.facts.pid)
        traces.setdefault(key, []).append(_Step(event.start_ns, event.iteration_ref, scheduled))


def _take_logged(event: Iteration, engines: dict[tuple[str, str], list[_Step]]) -> None:
    told = event.metadata
    counts = [_whole(told, name) for name in Scheduled.__struct_fields__]
    line = _whole(told, "line")
    if line is None or counts[0] is None or counts[2] is None:
        return
    scope = f"{told.get('scope') or 'engine'}#{told.get('incarnation', 0)}"
    if event.context.facts.pid is not None:
        scope += f"@{event.context.facts.pid}"
    scheduled = Scheduled(counts[0], counts[1], counts[2], counts[3])
    engines.setdefault((event.iteration_ref.producer_id, scope), []).append(_Step(line, event.iteration_ref, scheduled))


def _whole(told: Mapping[str, object], name: str) -> int | None:
    value = told.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _joined(
    trace: tuple[str, int | None], ranges: list[_Step], engine: tuple[str, str], logged: list[_Step]
) -> StepJoin:
    found: RangesJoined = join_ranges([one.scheduled for one in ranges], [one.scheduled for one in logged])
    return StepJoin(
        trace=trace,
        engine=engine,
        pairs=tuple((ranges[one].ref, logged[other].ref) for one, other in found.pairs),
        ranges=len(ranges),
        iterations=len(logged),
        undetermined=dict(sorted(Counter(why.value for why in found.ranges_apart.values()).items())),
        in_order=len(found.in_order),
        by_requests_only=found.by_requests_only,
    )
