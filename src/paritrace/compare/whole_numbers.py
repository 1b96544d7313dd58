"""Differences of whole numbers alone: where no floating-point number goes in or comes out, nothing rounds (CP-8b)."""

from collections.abc import Iterable

from paritrace.compare.blames import Root
from paritrace.compare.choices import INTEGERS
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Difference, Group
from paritrace.compare.translate import Side
from paritrace.evidence.calls import Level

WHOLE = (*INTEGERS, "bool")


def of_whole_numbers(of: RankComparison, place: Difference, root: Root | None) -> bool:
    """Whether an operator, or a stretch of them, gets equal inputs, gives others, and deals in whole numbers alone.

    An operator that turns numbers into whole ones, such as a comparison or a top-k, is none: what it reads was rounded.
    """
    if place.group is not Group.ORIGINATES or place.level != Level.OP or root is None:
        return False
    if root[0] == "call":
        return _whole(of.sides.baseline, (root[1],))
    stretch = of.stretches.found[root[1]]
    return _whole(of.sides.baseline, stretch.a) and _whole(of.sides.candidate, stretch.b)


def _whole(side: Side, calls: Iterable[int]) -> bool:
    kinds = side.recorded.kinds
    slots = (slot for i in calls for slot in (*side.calls[i].inputs, *side.calls[i].outputs))
    return all(kinds[slot.kind].dtype.startswith(WHOLE) for slot in slots)
