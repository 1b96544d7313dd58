"""Parameters that get a gradient on one side alone: a fact, whatever the bits are (CP-8, CA-29)."""

from msgspec.structs import replace

from paritrace.compare.figure_rows import DigestDifference, Head
from paritrace.compare.outside import figure_difference
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Difference, Group
from paritrace.compare.state_groups import GRADIENT

NONE = "none"
STRENGTH = "there or not: no size, and no round-off makes it"


def gradients_apart(of: RankComparison) -> tuple[DigestDifference, Difference] | None:
    """The first parameter of the first step at which one side alone has a gradient; how many more stands in the cause.

    Only a gradient that was looked for and is none counts, of a parameter that both optimizers have.
    """
    ours, theirs = of.digests.sides
    for head in sorted(head for head in ours.rows if head[3] == GRADIENT and head in theirs.rows):
        found = [*_alone(of, head, have=0), *_alone(of, head, have=1)]
        if found:
            side, name = found[0]
            more = f" ({len(found) - 1:,} more on one side alone)" if len(found) > 1 else ""
            cause = f"the {('baseline', 'candidate')[side]} alone has a gradient of {name}{more}"
            return _told(of, head, name, side=side, cause=cause)
    return None


def _alone(of: RankComparison, head: Head, *, have: int) -> list[tuple[int, str]]:
    """The parameters of which side `have` has a gradient where the other has none, whatever optimizer looked last."""
    mine, other = of.digests.sides[have], of.digests.sides[1 - have]
    absent = {name for name in other.absent.get(head, ()) if other.rows[head][name] is None}
    found = mine.rows[head].items() if absent else ()
    return [(have, name) for name, value in found if value is not None and name in absent]


def _told(of: RankComparison, head: Head, name: str, *, side: int, cause: str) -> tuple[DigestDifference, Difference]:
    value = of.digests.sides[side].rows[head][name] or NONE
    values = (value, NONE) if side == 0 else (NONE, value)
    at = (rows.place(head, name) for rows in of.digests.sides)
    figure = DigestDifference(*head, name, *values, *at)
    return figure, replace(figure_difference(of, figure), group=Group.OUTSIDE, cause=cause)
