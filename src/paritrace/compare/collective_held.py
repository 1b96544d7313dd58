"""Which collectives hold whose gradient, and which may hold it without saying so (CP-2a)."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from paritrace.compare.collective_words import sides_of
from paritrace.compare.ranks import RankComparison
from paritrace.compare.translate import Side

Held = dict[str, list[int]]
"""Parameter -> the collectives of one step that hold its gradient, by index."""
GRADIENTS = frozenset({"parameter", "gradient"})


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


def may_hold(of: RankComparison, number: int, names: Sequence[str], *, step: int, group: str) -> bool:
    """Whether a side runs a reduction there without a counterpart that says nothing of what it holds and is no smaller
    than one of these gradients: then nobody knows that it does not hold it.
    """
    side = sides_of(of)[number]
    smallest = min((_size(side, name) for name in names), default=0)
    return any(_num_elements(side, i) >= smallest for i in _silent(of, number, step=step, group=group))


def _silent(of: RankComparison, number: int, *, step: int, group: str) -> Iterator[int]:
    side = sides_of(of)[number]
    partners = (of.sides.pairing.partner_a, of.sides.pairing.partner_b)[number]
    for i, facts in side.collectives.items():
        alone = facts.reduce and not facts.parameters and partners[i] < 0
        if alone and facts.group == group and side.context_of(i)[0] == step:
            yield i


def _size(side: Side, name: str) -> int:
    """Elements of a parameter's gradient on this rank; 0 where the states do not show it."""
    recorded = side.recorded
    for names in recorded.state_names.values():
        if names.group in GRADIENTS:
            for other, kind in zip(names.names, names.kinds, strict=False):
                if other == name and kind in recorded.kinds:
                    return math.prod(recorded.kinds[kind].shape)
    return 0


def _num_elements(side: Side, i: int) -> int:
    return sum(math.prod(side.recorded.kinds[slot.kind].shape) for slot in side.calls[i].inputs)
