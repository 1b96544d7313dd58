"""How far the summarised slots of paired calls are apart, each measured once (CP-8b, CP-10a)."""

from collections.abc import Iterator

import numpy as np

from paritrace.compare.agreement import Sides
from paritrace.compare.draws import Summarised
from paritrace.compare.envelope import Envelope, Excess, Place
from paritrace.compare.strengths import Strengths, strengths
from paritrace.compare.translate import Side


class Measured:
    """The slots of one rank's pairs against an envelope. A slot is named by its place in the baseline's call."""

    def __init__(self, sides: Sides, envelope: Envelope) -> None:
        self.sides = sides
        self.envelope = envelope
        self._known: dict[tuple[int, str], dict[int, Strengths | None]] = {}
        self._excesses: dict[tuple[int, str, int], Excess | None] = {}

    def slots(self, i: int, side: str) -> dict[int, Strengths | None]:
        """The slots of one direction ("i", "o") that a side summarised; None where no distance can be stated."""
        known = self._known.get((i, side))
        if known is None:
            known = self._known[i, side] = dict(self._measured(i, side))
        return known

    def came_in(self, i: int) -> Iterator[tuple[int, Strengths | None]]:
        """The inputs of a call that differ, or of which nothing can be said."""
        for place, found in self.slots(i, "i").items():
            if found is None or not found.error == 0.0 == found.norm:
                yield place, found

    def excess(self, i: int, side: str, place: int) -> Excess | None:
        """How far one slot is out; None where nothing can be said."""
        key = (i, side, place)
        if key not in self._excesses:
            found = self.slots(i, side)[place]
            self._excesses[key] = None if found is None else self.envelope.excess(self.place_of(*key), found)
        return self._excesses[key]

    def place_of(self, i: int, side: str, place: int) -> Place:
        """The name of a slot in the envelope."""
        return (self.sides.baseline.calls.values("id")[i], side, place)

    def summarised(self) -> list[int]:
        """The paired calls of which either side may have summarised a slot."""
        ours, theirs = self.sides.baseline, self.sides.candidate
        partners = np.asarray(self.sides.pairing.partner_a)
        calls = np.flatnonzero(partners >= 0)
        mine, others = ours.calls.column("id")[calls], theirs.calls.column("id")[partners[calls]]
        found: list[int] = calls[ours.recorded.details.about(mine) | theirs.recorded.details.about(others)].tolist()
        return found

    def one_sided(self, i: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The arguments and results that a pair has on the baseline alone, and on the candidate alone."""
        ours, theirs = self._names(0, i), self._names(1, self.sides.pairing.partner_a[i])
        return tuple(name for name in ours if name not in theirs), tuple(name for name in theirs if name not in ours)

    def _names(self, number: int, index: int) -> tuple[str, ...]:
        side = (self.sides.baseline, self.sides.candidate)[number]
        call = side.calls[index]
        return tuple(side.recorded.names[slot.name] for slot in (*call.inputs, *call.outputs))

    def _measured(self, i: int, side: str) -> Iterator[tuple[int, Strengths | None]]:
        for place, left, right in summaries_of_pair(self.sides, i, side):
            if left is not None and right is not None and self._is_judged(left[1], right[1]):
                yield place, strengths(left, right)
            elif left is not None or right is not None:
                yield place, None

    def _is_judged(self, ours: str, theirs: str) -> bool:
        """Whether the draws say anything of a slot with these dtypes.

        Between unlike dtypes it is the narrower one's round-off that counts: the baseline's own draws do not show it,
        those of a run that was named for it (`--envelope`) do.
        """
        return ours == theirs or self.envelope.of_another


def summaries_of_pair(sides: Sides, i: int, side: str) -> Iterator[tuple[int, Summarised | None, Summarised | None]]:
    """The slots of one direction that both calls of a pair have: the baseline's place, and both summaries."""
    j = sides.pairing.partner_a[i]
    places = {name: place for place, name in enumerate(_names(sides.candidate, j, side))}
    for place, name in enumerate(_names(sides.baseline, i, side)):
        partner = places.get(name)
        if partner is None:
            continue  # how the call is made differs, which is no distance: `one_sided` tells it
        yield place, _summarised(sides.baseline, i, side, place), _summarised(sides.candidate, j, side, partner)


def _slots(of: Side, index: int, side: str) -> range:
    return of.calls.inputs_of(index) if side == "i" else of.calls.outputs_of(index)


def _names(of: Side, index: int, side: str) -> list[str]:
    """The names of a call's slots of one direction, of which no record is made."""
    names, numbers = of.recorded.names, of.calls.values("name")
    return [names[numbers[slot]] for slot in _slots(of, index, side)]


def _summarised(of: Side, index: int, side: str, place: int) -> Summarised | None:
    """As `summarised`, of a call by its index."""
    detail = of.recorded.details.get((of.calls.values("id")[index], side, place))
    if detail is None:
        return None
    kind = of.calls.values("kind")[_slots(of, index, side)[place]]
    return detail, of.recorded.kinds[kind].dtype
