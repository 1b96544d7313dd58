"""What stands beside device time: what importers counted, and which steps of traces a log knows (IN-12)."""

from collections.abc import Iterable
from typing import cast

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.iteration_joins import StepJoin, step_joins
from paritrace.inference.records import AnyEvent, Capabilities, Iteration
from paritrace.inference.result import SourceCounts, StepsOfTrace

MOST_PAIRS = 1000  # of one trace and one engine


class Beside(Struct, frozen=True):
    """Both, in the order of their names."""

    sources: tuple[SourceCounts, ...]
    steps: tuple[StepsOfTrace, ...]


def beside(events: Iterable[AnyEvent], /) -> Beside:
    """Gather both in one pass over an artifact's events."""
    sources: list[SourceCounts] = []
    iterations: list[Iteration] = []
    for event in events:
        if isinstance(event, Iteration):
            iterations.append(event)
        elif isinstance(event, Capabilities) and isinstance(event.metadata.get("counts"), dict):
            sources.append(_source(event))
    return Beside(
        sources=tuple(sorted(sources, key=lambda one: (one.component, one.attachments))),
        steps=tuple(_steps(one) for one in step_joins(iterations)),
    )


def _source(event: Capabilities) -> SourceCounts:
    told = event.metadata
    counts = cast("dict[str, object]", told["counts"])
    return SourceCounts(
        component=event.component,
        attachments=_texts(told.get("attachments")),
        complete=told.get("complete") is True,
        counts={name: count for name, count in counts.items() if isinstance(count, int)},
        limits=_texts(told.get("limits")),
    )


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(one for one in cast("list[object]", value) if isinstance(one, str))


def _steps(join: StepJoin) -> StepsOfTrace:
    return StepsOfTrace(
        trace=join.trace[0],
        pid=Gap(InferenceGap.NOT_TOLD) if join.trace[1] is None else join.trace[1],
        engine=" ".join(join.engine),
        ranges=join.ranges,
        iterations=join.iterations,
        num_pairs=len(join.pairs),
        pairs=join.pairs[:MOST_PAIRS],
        pairs_left_out=max(0, len(join.pairs) - MOST_PAIRS),
        undetermined=join.undetermined,
        in_order=join.in_order,
        by_requests_only=join.by_requests_only,
    )
