"""What stands before all that leaves the envelope by itself: origins that no envelope judges, and states (CP-8b): pure.

An exit needs inputs that are inside. Where a state is written by code that no judged module encloses, what reads it
leaves with an input of which no draw says anything: that is no exit, and what leaves behind it must not stand first.
"""

from collections.abc import Iterable

from paritrace.compare.exits import Judged, parents
from paritrace.compare.outside import Moment, moment_of_call
from paritrace.compare.placing import NAMED, Placed
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Group
from paritrace.evidence.calls import Phase

PHASES = tuple(Phase)  # in their order in a step


def first_unexplained(of: RankComparison, judged: Judged) -> int | None:
    """The first call whose output is out before any exit, and inside none; None where exits explain all that is out."""
    exits = {found.call for found in judged.exits}
    moments = {i: moment_of_call(of, i) for i, excess in judged.outputs.items() if excess.beyond}
    if not moments:
        return None
    first = min(moments, key=moments.__getitem__)
    if any(i in exits for i in (first, *parents(of.sides, first))):
        return None
    return first


def leading(items: Iterable[Placed], until: Moment) -> Placed | None:
    """The one origin up to a moment that no envelope judges; None where there are several, or none."""
    found = [item for item in items if item.moment <= until and _is_unjudged(item)]
    return found[0] if len(found) == 1 else None


def _is_unjudged(item: Placed) -> bool:
    """Whether no draw says anything of an origin; of what a call reads, its own output says only what follows."""
    if item.difference.group not in NAMED or item.difference.collective:
        return False
    return item.excess is None or (item.difference.group is not Group.ORIGINATES and item.excess.beyond)


def stands_before(item: Placed, exits: Iterable[Placed]) -> bool:
    """Whether a state leaves the envelope in a step and phase before every exit."""
    return all(_when(item) < _when(exit_) for exit_ in exits)


def _when(item: Placed) -> tuple[int, int]:
    return item.difference.step, PHASES.index(Phase(item.difference.phase))
