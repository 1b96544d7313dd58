"""Whether both sides saw every collective of a step: only then is one called missing on a side (CP-21)."""

from paritrace.compare.collective_words import sides_of
from paritrace.compare.ranks import DROPPING, RankComparison
from paritrace.compare.translate import Side
from paritrace.correspondence.vocabulary import Unpaired
from paritrace.evidence.gaps import CountedGap

UNSEEN = DROPPING | {
    CountedGap.THREAD_NOT_COVERED,
    CountedGap.CAPTURE_ERROR,
    CountedGap.NOT_OBSERVABLE_COMPILED,
    CountedGap.NOT_OBSERVABLE_CUDA_GRAPH,
}
"""Gaps behind which a collective may have run unseen."""
NOT_LOOKED_FOR = frozenset(
    {Unpaired.NOT_RECORDED, Unpaired.DROPPED, Unpaired.NOT_OBSERVABLE_COMPILED, Unpaired.LINK_AMBIGUOUS}
)
"""Reasons for which a call has no partner that say nothing about the other side."""


def is_whole(of: RankComparison) -> bool:
    """Whether both sides recorded this rank to its end, with nothing lost that may have been a collective."""
    return all(_is_whole(side) for side in sides_of(of))


def _is_whole(side: Side) -> bool:
    recorded = side.recorded
    return recorded.end is not None and not recorded.bytes_lost and not UNSEEN & recorded.gaps.keys()


def steps_with_operators(of: RankComparison) -> set[int]:
    """The steps of which both sides recorded operators, among which collectives are."""
    ours, theirs = (side.steps_with_operators() for side in sides_of(of))
    return ours & theirs
