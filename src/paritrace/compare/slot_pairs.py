"""The slots of many pairs of calls against each other at once: which differ in bits, where bits alone decide (CP-7)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from paritrace.compare.lookups import pairs_of
from paritrace.compare.slot_words import Numbers, SlotWords

BLOCK = 1 << 16  # pairs at once: some 30 MB while their slots are compared
MAX_SLOTS = 62  # places of differing slots are the bits of a word


class Pattern(NamedTuple):
    """How a pair differs: bit n of `places` is slot n, inputs before outputs."""

    places: int
    inputs: int
    outputs: int
    scalars: bool  # differ

    @property
    def differing_inputs(self) -> tuple[int, ...]:
        """The places of inputs with other bits."""
        return tuple(place for place in range(self.inputs) if self.places >> place & 1)

    @property
    def differing_outputs(self) -> tuple[int, ...]:
        """The places of outputs with other bits."""
        return tuple(place for place in range(self.outputs) if self.places >> (self.inputs + place) & 1)


class Unequal(NamedTuple):
    """Pairs that are not plainly equal, or were asked for, as columns; of `plain` ones bits alone decide."""

    first: Numbers
    second: Numbers
    equal: Numbers
    plain: Numbers
    places: Numbers
    inputs: Numbers
    outputs: Numbers
    scalars: Numbers

    def patterns(self, wanted: Numbers) -> tuple[list[Pattern], Numbers]:
        """The ways in which the wanted pairs differ, and of each pair which it is: most differ alike."""
        shape = (self.inputs << 8 | self.outputs) << 1 | self.scalars  # of plain pairs at most 62 each
        found, which = pairs_of(self.places[wanted].view(np.int64), shape[wanted])
        return [
            Pattern(places & (1 << 64) - 1, shape >> 9, shape >> 1 & 255, bool(shape & 1)) for places, shape in found
        ], which


def unequal(ours: SlotWords, theirs: SlotWords, *, pairs: tuple[Numbers, Numbers], also: Numbers) -> Iterator[Unequal]:
    """The pairs that are not plainly equal, in the order given, and those of which `also` is true.

    A pair is equal when scalars, names, kinds and bits are, and nothing of it is a gap.
    """
    for start in range(0, len(pairs[0]), BLOCK):
        span = slice(start, start + BLOCK)
        yield _block(ours, theirs, pairs[0][span], pairs[1][span], also[span])


def _block(ours: SlotWords, theirs: SlotWords, first: Numbers, second: Numbers, also: Numbers) -> Unequal:
    counts = _counts(ours, first)
    alike = (counts == _counts(theirs, second)).all(axis=0)
    differing = np.zeros(len(first), np.uint64)
    places = np.flatnonzero(alike)
    alike[places], differing[places] = _slots(ours, theirs, first[places], second[places])
    scalars = ours.scalars[first] != theirs.scalars[second]
    equal = alike & (differing == 0) & ~scalars
    wanted = np.flatnonzero(~equal | also)
    columns = (first, second, equal, alike, differing, counts[0], counts[1], scalars)
    return Unequal(*(column[wanted] for column in columns))


def _counts(words: SlotWords, calls: Numbers) -> Numbers:
    return np.stack((words.middle[calls] - words.first[calls], words.first[calls + 1] - words.middle[calls]))


def _slots(ours: SlotWords, theirs: SlotWords, first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    """Of pairs with equally many slots: whether bits alone decide, and the word of the slots that differ."""
    counts = ours.first[first + 1] - ours.first[first]
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    left, right = np.repeat(ours.first[first], counts) + within, np.repeat(theirs.first[second], counts) + within
    unlike = (ours.names[left] != theirs.names[right]) | (ours.kinds[left] != theirs.kinds[right])
    unlike |= ours.gaps[left] | theirs.gaps[right]
    other = (ours.bits[left] != theirs.bits[right]) | (ours.odd[left] != theirs.odd[right])
    bit = np.where(other, np.uint64(1) << np.minimum(within, MAX_SLOTS).astype(np.uint64), np.uint64(0))
    plain = (_sums(unlike.astype(np.uint64), ends, counts) == 0) & (counts <= MAX_SLOTS)
    return plain, _sums(bit, ends, counts)


def _sums(values: Numbers, ends: Numbers, counts: Numbers) -> Numbers:
    totals = np.concatenate((np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)))
    sums: Numbers = totals[ends] - totals[ends - counts]
    return sums
