"""Unpaired stretches as composite calls: do their inputs agree at the border (CP-8a)?"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from paritrace.compare.agreement import Agreements, Sides
from paritrace.compare.digests import Digests
from paritrace.compare.flows import Draws, FromCall, FromOrigin, FromUncompared, Source, source_of
from paritrace.correspondence.stretches import Stretches
from paritrace.evidence.calls import OriginKind, Slot

STATEFUL = {
    OriginKind.PARAMETER: "parameter",
    OriginKind.BUFFER: "buffer",
    OriginKind.OPTIMIZER_STATE: "optimizer_state",
}


Reads = dict[FromOrigin, list[tuple[int, Slot]]]
"""The calls that read something by name, and the slots they read it through."""


class Border(NamedTuple):
    """What flows into a region: whether all of it agrees, and if not, which differing call or name is to blame."""

    agrees: bool
    differing_call: int = -1  # a paired call of the baseline whose output differs and flows in
    differing_name: FromOrigin | None = None
    unseen: bool = False  # something flows in that was not compared
    collectives: frozenset[tuple[int, int]] = frozenset()  # side and index: other ranks may flow in through them


class Regions:
    """The stretches of one comparison, each asked about its border at most once."""

    def __init__(self, sides: Sides, verdicts: Agreements, stretches: Stretches, digests: Digests) -> None:
        self.sides = sides
        self.verdicts = verdicts
        self.stretches = stretches
        self.digests = digests
        self._borders: dict[frozenset[int], Border] = {}

    @cached_property
    def draws(self) -> tuple[Draws, Draws]:
        """The calls of both sides that draw random numbers; seldom asked for."""
        return Draws(self.sides.baseline), Draws(self.sides.candidate)

    @cached_property
    def _states(self) -> set[tuple[int, str, str]]:
        different = self.digests.different
        begins = [head for head in different.heads if head[2] == "begin"]
        return {(head[0], head[3], name) for head in begins for name in different.names(head)}

    def of(self, side: int, index: int) -> int:
        """The stretch that an unpaired call belongs to, -1 if none."""
        return (self.stretches.of_a, self.stretches.of_b)[side][index]

    def ends_at(self, place: int) -> tuple[int, int]:
        """Sort key of stretches by where they end, alike whichever side is named first."""
        stretch = self.stretches.found[place]
        ours = stretch.a[-1] if stretch.a else stretch.after[0]
        theirs = stretch.b[-1] if stretch.b else stretch.after[1]
        return (max(ours, theirs), min(ours, theirs))

    def border(self, places: frozenset[int]) -> Border:
        """Compare what flows into these stretches, through other unpaired calls as well."""
        if places not in self._borders:
            self._borders[places] = self._border(places)
        return self._borders[places]

    def _border(self, places: frozenset[int]) -> Border:
        names: tuple[Reads, Reads] = ({}, {})
        unseen = False
        inside: set[tuple[int, int]] = set()
        for side in (0, 1):
            for index, slot in self._inside(side, places, seen=inside):
                source = source_of((self.sides.baseline, self.sides.candidate)[side], slot)
                differing = self._differing(side, index, source)
                if differing is not None:
                    return differing
                unseen = unseen or isinstance(source, FromUncompared)
                if isinstance(source, FromOrigin) and source.name:
                    names[side].setdefault(source, []).append((index, slot))
        for origin in sorted(names[0].keys() & names[1].keys()):
            (i, ours), (j, theirs) = (min(side[origin], key=lambda read: read[0]) for side in names)
            if ours.bits == theirs.bits:
                continue
            if origin.kind is not OriginKind.RNG or self._drawn_alike(i, j):
                return Border(agrees=False, differing_name=origin)
            unseen = True  # other draws came before on either side: that the states differ says nothing of the outside
        both = (self.sides.baseline.collectives, self.sides.candidate.collectives)
        through = frozenset((side, i) for side, i in inside if i in both[side])
        return Border(agrees=not unseen, unseen=unseen, collectives=through)

    def _drawn_alike(self, i: int, j: int) -> bool:
        """Whether the draws before these two are one pair, or there are none on either side."""
        before, other = self.draws[0].previous(i), self.draws[1].previous(j)
        return other == (before if before < 0 else self.sides.pairing.partner_a[before])

    def _differing(self, side: int, index: int, source: Source) -> Border | None:
        """What is to blame when this source differs between the sides."""
        if isinstance(source, FromCall) and self._differs(side, source.call, source.output):
            partner = source.call if side == 0 else self.sides.pairing.partner_b[source.call]
            return Border(agrees=False, differing_call=partner)
        if isinstance(source, FromOrigin) and source.kind in STATEFUL and self._state_differs(side, index, source):
            return Border(agrees=False, differing_name=source)
        return None

    def _inside(self, side: int, places: frozenset[int], *, seen: set[tuple[int, int]]) -> Iterator[tuple[int, Slot]]:
        """Every input slot of the region, and of calls outside it that are unpaired or could not be compared.

        All these calls are put into `seen`.
        """
        mine = (self.sides.baseline, self.sides.candidate)[side]
        partners = (self.sides.pairing.partner_a, self.sides.pairing.partner_b)[side]
        waiting: list[int] = []
        for place in places:
            stretch = self.stretches.found[place]
            waiting += stretch.a if side == 0 else stretch.b
        seen.update((side, index) for index in waiting)
        while waiting:
            index = waiting.pop()
            for slot in mine.calls[index].inputs:
                source = source_of(mine, slot)
                if isinstance(source, FromCall) and (partners[source.call] < 0 or self._unseen(side, source)):
                    if (side, source.call) not in seen:
                        seen.add((side, source.call))
                        waiting.append(source.call)
                else:
                    yield index, slot

    def _differs(self, side: int, maker: int, output: int) -> bool:
        """Whether a paired call's output differs; one that could not be compared counts by the call's inputs."""
        verdict = self.verdicts.verdicts.get(maker if side == 0 else self.sides.pairing.partner_b[maker])
        if verdict is None:
            return False
        return output in verdict.outputs or (output in verdict.unseen_outputs and bool(verdict.inputs))

    def _unseen(self, side: int, source: FromCall) -> bool:
        """Whether nothing is known of this output: then what flows into its call counts instead."""
        verdict = self.verdicts.verdicts.get(source.call if side == 0 else self.sides.pairing.partner_b[source.call])
        return verdict is not None and source.output in verdict.unseen_outputs and not verdict.inputs

    def _state_differs(self, side: int, index: int, origin: FromOrigin) -> bool:
        step, _, _ = (self.sides.baseline, self.sides.candidate)[side].context_of(index)
        return (step, STATEFUL[origin.kind], origin.name) in self._states
