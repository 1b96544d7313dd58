"""Which collectives hold whose gradient, and which may hold it without saying so (CP-2a)."""

import math
from collections import defaultdict
from collections.abc import Sequence

from paritrace.compare.collective_words import sides_of
from paritrace.compare.ranks import RankComparison
from paritrace.compare.state_groups import GRADIENT, PARAMETER
from paritrace.compare.translate import Side

Held = dict[str, list[int]]
"""Parameter -> the collectives of one step that hold its gradient, by index."""
GRADIENTS = frozenset({PARAMETER, GRADIENT})


def held_by_step(of: RankComparison, number: int) -> dict[int, Held]:
    """What the collectives of a side hold. One that does not say it holds what its counterpart does."""
    side = sides_of(of)[number]
    found: dict[int, Held] = defaultdict(lambda: defaultdict(list))
    for i in side.collectives:
        for name in held(of, number, i):
            found[side.context_of(i)[0]][name].append(i)
    return found


def held(of: RankComparison, number: int, i: int) -> tuple[str, ...]:
    """The parameters whose gradients a collective holds; empty where neither side says it."""
    mine, other = sides_of(of)[number], sides_of(of)[1 - number]
    partner = (of.sides.pairing.partner_a, of.sides.pairing.partner_b)[number][i]
    facts = other.collectives.get(partner) if partner >= 0 else None
    return mine.collectives[i].parameters or (facts.parameters if facts is not None else ())


class Unsaid:
    """The reductions without a counterpart that say nothing of what they hold: any gradient of their size may be in."""

    def __init__(self, of: RankComparison) -> None:
        self._largest: dict[tuple[int, int, str], int] = {}  # side, step, group -> elements of the largest
        for number, side in enumerate(sides_of(of)):
            partners = (of.sides.pairing.partner_a, of.sides.pairing.partner_b)[number]
            for i, facts in side.collectives.items():
                if facts.reduce and not facts.parameters and partners[i] < 0:
                    key = (number, side.context_of(i)[0], facts.group)
                    self._largest[key] = max(self._largest.get(key, 0), _num_elements(side, i))
        self._sizes = tuple(_sizes(side) if self._largest else {} for side in sides_of(of))

    def may_hold(self, number: int, names: Sequence[str], *, step: int, group: str) -> bool:
        """Whether nobody knows that one of these gradients is not in a collective of that side, step and group.

        A gradient whose size no state shows may be in any.
        """
        largest = self._largest.get((number, step, group), -1)
        return largest >= min((self._sizes[number].get(name, 0) for name in names), default=0)


def _sizes(side: Side) -> dict[str, int]:
    """Elements of each parameter's gradient on this rank, by its recorded name."""
    recorded = side.recorded
    return {
        name: math.prod(recorded.kinds[kind].shape)
        for names in recorded.state_names.values()
        if names.group in GRADIENTS
        for name, kind in zip(names.names, names.kinds, strict=False)
        if kind in recorded.kinds
    }


def _num_elements(side: Side, i: int) -> int:
    return sum(math.prod(side.recorded.kinds[slot.kind].shape) for slot in side.calls[i].inputs)
