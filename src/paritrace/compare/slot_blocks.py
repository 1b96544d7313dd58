"""The slots of many calls of one side as columns: what they are, and what a comparison says of each (CP-7, CP-16)."""

from collections.abc import Sequence

import numpy as np

from paritrace.compare.agreement import bits_decide, judged_slots
from paritrace.compare.call_blocks import NO_SUMMARY, Coded, Column, Summary, coded
from paritrace.compare.call_facts import CallFacts
from paritrace.compare.element_figures import ElementFigures
from paritrace.compare.kept_slots import KeptSlots, Where
from paritrace.compare.lookups import Numbers
from paritrace.compare.result import Agreement
from paritrace.compare.slot_pairs import unequal
from paritrace.compare.slots import Order, memory_order
from paritrace.compare.translate import Side
from paritrace.evidence.calls import Kind

AGREEMENTS = (None, *Agreement)
EQUAL, DIFFERENT, UNKNOWN = map(AGREEMENTS.index, (Agreement.EQUAL, Agreement.DIFFERENT, Agreement.NOT_COMPARABLE))
DIRECTIONS = ("i", "o")


class SlotFacts:
    """The slots of one side of one rank."""

    def __init__(self, facts: CallFacts, side: int, *, kept: KeptSlots | None) -> None:
        self._of = facts.of
        self._told = np.append(facts.of.verdicts.verdicts.codes != 0, False)  # the pairs that have a verdict
        self._kept = kept if kept is not None and kept.any else None
        self._number = side
        self._sides = (facts.of.sides.baseline, facts.of.sides.candidate)
        self._side: Side = self._sides[side]

    def block(self, start: int, end: int, *, ours: Numbers) -> tuple[Numbers, dict[str, Column], Column]:
        """Where the slots of each call from `start` to `end` begin, their columns, and their summaries.

        Args:
            ours: the baseline's index of each of these calls, -1 of one without a partner.
        """
        calls, recorded = self._side.calls, self._side.recorded
        first = calls.column("first")[start : end + 1].astype(np.int64)
        middle = calls.column("middle")[start:end] - first[0]
        span = slice(int(first[0]), int(first[-1]))
        first -= first[0]
        owners = np.repeat(np.arange(end - start), np.diff(first))
        names = coded(calls.column("name")[span], recorded.names.__getitem__)
        kinds = coded(calls.column("kind")[span], recorded.kinds.__getitem__)
        agreement = self._agreements(start, ours, (first, middle), owners)
        directions = (np.arange(len(owners)) >= middle[owners]).astype(np.int8)
        slots: dict[str, Column] = {
            "direction": Coded(directions, DIRECTIONS),
            "name": names,
            "dtype": kinds.map(lambda kind: kind.dtype),
            "shape": kinds.map(lambda kind: kind.shape),
            "logical_nbytes": kinds.map(lambda kind: kind.logical_nbytes),
            "strides": kinds.map(_strides),
            "bits": calls.bits_between(span.start, span.stop),
            "agreement": Coded(agreement, AGREEMENTS),
            "figures": self._figures(start, np.flatnonzero(agreement == DIFFERENT), owners, (directions, names)),
        }
        return first, slots, self._summaries(start, (first, middle), kinds)

    # --- agreement ---------------------------------------------------------------------------------------------

    def _agreements(self, start: int, ours: Numbers, bounds: tuple[Numbers, Numbers], owners: Numbers) -> Numbers:
        """The agreement of each slot; of a pair without a verdict all are equal."""
        found = np.where(ours >= 0, EQUAL, 0).astype(np.int8)[owners]
        first, middle = bounds
        apart = np.flatnonzero(self._told[ours])
        mine, theirs = ours[apart], np.asarray(self._of.sides.pairing.partner_a)[ours[apart]]
        words = (self._sides[0].words, self._sides[1].words)
        seen = 0
        for block in unequal(*words, pairs=(mine, theirs), also=np.ones(len(mine), np.bool_)):
            rows, by_bits = apart[seen : seen + len(block.first)], bits_decide(self._of.sides, block)
            seen += len(block.first)
            starts, counts = first[rows[by_bits]], first[rows[by_bits] + 1] - first[rows[by_bits]]
            within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
            bit = np.uint64(1) << within.astype(np.uint64)
            differ, gaps = (np.repeat(word[by_bits], counts) & bit != 0 for word in (block.places, block.gaps))
            found[np.repeat(starts, counts) + within] = np.where(gaps, UNKNOWN, np.where(differ, DIFFERENT, EQUAL))
            for row in rows[~by_bits].tolist():
                found[first[row] : first[row + 1]] = self._judged(
                    int(ours[row]), int(middle[row] - first[row]), int(first[row + 1] - first[row])
                )
        return found

    def _judged(self, i: int, num_inputs: int, num_slots: int) -> Sequence[int]:
        """The agreement of each slot of a pair that is looked at slot by slot; 0 where none is told."""
        found = [0] * num_slots
        for direction, offset in (("i", 0), ("o", num_inputs)):
            for slot in judged_slots(self._of.sides, i, self._of.sides.pairing.partner_a[i], direction=direction):
                place = (slot.place_a, slot.place_b)[self._number]
                if place >= 0:
                    found[offset + place] = AGREEMENTS.index(slot.judged.agreement)
        return found

    # --- summaries, and figures of whole tensors ---------------------------------------------------------------

    def _summaries(self, start: int, bounds: tuple[Numbers, Numbers], kinds: Coded[Kind]) -> Column:
        first, middle = bounds
        values = [NO_SUMMARY]
        codes = np.zeros(int(first[-1]), np.int32)
        ids = self._side.calls.column("id")[start : start + len(middle)]
        for row, side, slot, detail in self._side.recorded.details.of_calls(ids):
            low, high = (first[row], middle[row]) if side == "i" else (middle[row], first[row + 1])
            if low + slot < high:
                at = int(low) + slot
                words = (detail.xor, detail.regions, detail.elements, detail.semantics or "")
                codes[at] = len(values)
                values.append(Summary(*words, kinds.values[int(kinds.codes[at])].logical_nbytes))
        return Coded(codes, values)

    def _figures(self, start: int, differing: Numbers, owners: Numbers, spelled: tuple[Numbers, Coded[str]]) -> Column:
        """The figures of slots that differ and that both runs keep whole (CP-11)."""
        codes = np.zeros(len(owners), np.int32)
        values: list[ElementFigures | None] = [None]
        directions, names = spelled
        places: list[int] = [] if self._kept is None else differing.tolist()
        for at in places:
            name = names.values[int(names.codes[at])]
            where = self._where(start + int(owners[at]), DIRECTIONS[int(directions[at])], name)
            codes[at] = len(values)
            values.append(self._kept.told(where).figures if self._kept is not None else None)
        return Coded(codes, values)

    def _where(self, index: int, direction: str, name: str) -> Where:
        pairing = self._of.sides.pairing
        i = index if self._number == 0 else pairing.partner_b[index]
        ids = (self._sides[0].calls.values("id")[i], self._sides[1].calls.values("id")[pairing.partner_a[i]])
        return Where(self._of.rank, ids, direction, name, self._sides[0].module_of(i))


def _strides(kind: Kind) -> tuple[int, ...]:
    """The strides where the elements do not lie in logical order."""
    row_major = memory_order(kind) == Order(tuple(d for d, size in enumerate(kind.shape) if size > 1), ())
    return () if row_major else kind.strides
