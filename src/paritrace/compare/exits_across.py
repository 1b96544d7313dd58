"""What leaves the envelope on one rank because something left it on another: a consequence (CP-8b, CP-9): pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from paritrace.compare.placing import Placed
from paritrace.compare.rank_summary import RankSummary
from paritrace.evidence.calls import Phase

Exits = Sequence[list[Placed]]


def exits_across(ranks: Sequence[RankSummary]) -> list[RankSummary]:
    """All summaries without the exits that follow from those of other ranks.

    An exit follows when a collective inside its call is given something by a rank on which an exit stands before that
    collective; when it is of a later step than another rank's; or when it is of a backward pass, of gradients or of an
    optimizer, and another rank leaves in a forward pass of that step: gradients and weights meet across ranks.
    """
    more: Counter[tuple[int, int]] = Counter()
    kept: list[list[Placed]] = []
    for number, rank in enumerate(ranks):
        kept.append([])
        for item in rank.exits:
            cause = _cause(ranks, number, item)
            if cause is None:
                kept[-1].append(item)
            else:
                more[cause] += 1 + item.consequences
    return [
        replace(rank, exits=[item._replace(consequences=item.consequences + more[n, id(item)]) for item in kept[n]])
        for n, rank in enumerate(ranks)
    ]


def _cause(ranks: Sequence[RankSummary], number: int, item: Placed) -> tuple[int, int] | None:
    """The other rank's exit that one follows from: the number of the rank, and which of its exits."""
    for other, rank in enumerate(ranks):
        if other == number or rank.restarts != ranks[number].restarts:
            continue
        for exit_ in rank.exits:
            if _is_earlier(exit_, item) or _gives(ranks[number], item, rank, exit_):
                return other, id(exit_)
    return None


def _is_earlier(exit_: Placed, item: Placed) -> bool:
    if exit_.difference.step != item.difference.step:
        return exit_.difference.step < item.difference.step
    return exit_.difference.phase == Phase.FORWARD and item.difference.phase != Phase.FORWARD


def _gives(rank: RankSummary, item: Placed, giver: RankSummary, exit_: Placed) -> bool:
    """Whether a collective inside a call is given something by a rank on which an exit ended before it began."""
    if item.root is None or exit_.difference.step != item.difference.step:
        return False
    return any(
        giver.rank in members and exit_.moment.at < giver.begun.get(key, -1)
        for key, members in rank.given.get(item.root, ())
    )
