"""Which range of a trace is which iteration of an engine's log: by what both say was scheduled, never by time (IN-12).

A rule. Only a step whose counts occur once on each side is an anchor, and only anchors in one order stand. What lies
between two anchors in equal order is told as an estimate and joins nothing: where the log lost a line and the trace a
range, equal counts would join the wrong two. What nobody can see: of two steps with equal counts each side lost the
other one, so that one of each is left.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from enum import StrEnum

from msgspec import Struct

from paritrace.correspondence.engine import correspond
from paritrace.inference.execution_ranges import Scheduled
from paritrace.inference.neutral import sequence_records


class WhyApart(StrEnum):
    """Why a range has no iteration, or an iteration no range."""

    NOT_UNIQUE = "not_unique"  # its counts occur more than once on a side
    CROSSED = "crossed"  # the sides order it differently than others
    NOT_THERE = "not_there"  # its counts do not occur on the other side


class RangesJoined(Struct, frozen=True):
    """Which of both sides, given by place, are one step.

    Attributes:
        pairs: (range, iteration), rising.
        ranges_apart, iterations_apart: the others, each with why it is undetermined.
        in_order: further pairs that stand in equal order between anchors, or where both sides are alike from end to
            end: an estimate.
        by_requests_only: an older engine's ranges tell no tokens; the anchors are of requests alone.
    """

    pairs: tuple[tuple[int, int], ...]
    ranges_apart: dict[int, WhyApart]
    iterations_apart: dict[int, WhyApart]
    in_order: tuple[tuple[int, int], ...]
    by_requests_only: bool


def join_ranges(ranges: Sequence[Scheduled], iterations: Sequence[Scheduled], /) -> RangesJoined:
    """Join the ranges of one trace to the iterations of one engine's log; both in their own order."""
    plain = any(one.context_tokens is None or one.generation_tokens is None for one in (*ranges, *iterations))
    ours = [_key(one, plain=plain) for one in ranges]
    theirs = [_key(one, plain=plain) for one in iterations]
    once = _once(ours) & _once(theirs)
    pairing = correspond(sequence_records(ours), sequence_records(theirs)).pairing
    found = [(place, partner) for place, partner in enumerate(pairing.partner_a) if partner >= 0]
    pairs = tuple(pair for pair in found if ours[pair[0]] in once and pair[0] not in pairing.reordered)
    joined = ({one for one, _ in pairs}, {other for _, other in pairs})
    return RangesJoined(
        pairs=pairs,
        ranges_apart=_apart(ours, set(theirs), once, joined[0]),
        iterations_apart=_apart(theirs, set(ours), once, joined[1]),
        in_order=tuple(pair for pair in found if ours[pair[0]] not in once),
        by_requests_only=plain,
    )


def _key(one: Scheduled, *, plain: bool) -> Hashable:
    return (one.context_requests, one.generation_requests) if plain else one


def _once(keys: Sequence[Hashable]) -> set[Hashable]:
    return {key for key, count in Counter(keys).items() if count == 1}


def _apart(
    keys: Sequence[Hashable], others: set[Hashable], once: set[Hashable], joined: set[int]
) -> dict[int, WhyApart]:
    return {
        place: WhyApart.NOT_THERE if key not in others else WhyApart.CROSSED if key in once else WhyApart.NOT_UNIQUE
        for place, key in enumerate(keys)
        if place not in joined
    }
