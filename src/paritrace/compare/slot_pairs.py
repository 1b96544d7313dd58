"""The slots of many pairs of calls against each other at once: which differ in bits, where bits alone decide (CP-7)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from paritrace.compare.lookups import pairs_of
from paritrace.compare.slot_words import Numbers, SlotWords

BLOCK = 1 << 16  # pairs at once: some 30 MB while their slots are compared
_WORD = (1 << 64) - 1
MAX_SLOTS = 62  # places of differing slots are the bits of a word


class Pattern(NamedTuple):
    """How a pair differs: bit n of a word is slot n, inputs before outputs."""

    places: int  # with other bits
    unseen: int  # a gap on either side hides what was there
    inputs: int
    outputs: int
    scalars: bool  # differ

    def of_inputs(self, word: int) -> tuple[int, ...]:
        """The places of the inputs that a word names."""
        return tuple(place for place in range(self.inputs) if word >> place & 1)

    def of_outputs(self, word: int) -> tuple[int, ...]:
        """The places of the outputs that a word names."""
        return tuple(place for place in range(self.outputs) if word >> (self.inputs + place) & 1)


class Unequal(NamedTuple):
    """Pairs that are not plainly equal, or were asked for, as columns; of `plain` ones bits alone decide."""

    first: Numbers
    second: Numbers
    equal: Numbers
    plain: Numbers
    places: Numbers  # words of slots, as in `Pattern`
    gaps: Numbers  # a word of the slots with a gap on either side, of which nothing can be said
    unseen: Numbers
    inputs: Numbers
    outputs: Numbers
    scalars: Numbers

    def patterns(self, wanted: Numbers) -> tuple[list[Pattern], Numbers]:
        """The ways in which the wanted pairs differ, and of each pair which it is: most differ alike."""
        shape = (self.inputs << 8 | self.outputs) << 1 | self.scalars  # of plain pairs at most 62 each
        words, of_words = pairs_of(self.places[wanted].view(np.int64), self.unseen[wanted].view(np.int64))
        found, which = pairs_of(of_words, shape[wanted])
        return [
            Pattern(places & _WORD, unseen & _WORD, shape >> 9, shape >> 1 & 255, bool(shape & 1))
            for (places, unseen), shape in ((words[number], shape) for number, shape in found)
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
    differing, gaps, unseen = (np.zeros(len(first), np.uint64) for _ in range(3))
    places = np.flatnonzero(alike)
    found = _slots(ours, theirs, first[places], second[places])
    alike[places], differing[places], gaps[places], unseen[places] = found
    scalars = ours.scalars[first] != theirs.scalars[second]
    equal = alike & (differing == 0) & (gaps == 0) & ~scalars
    wanted = np.flatnonzero(~equal | also)
    columns = (first, second, equal, alike, differing, gaps, unseen, counts[0], counts[1], scalars)
    return Unequal(*(column[wanted] for column in columns))


def _counts(words: SlotWords, calls: Numbers) -> Numbers:
    return np.stack((words.middle[calls] - words.first[calls], words.first[calls + 1] - words.middle[calls]))


def _slots(ours: SlotWords, theirs: SlotWords, first: Numbers, second: Numbers) -> tuple[Numbers, ...]:
    """Of pairs with equally many slots: do bits alone decide; words of slots that differ, have gaps, are unseen."""
    counts = ours.first[first + 1] - ours.first[first]
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    left, right = np.repeat(ours.first[first], counts) + within, np.repeat(theirs.first[second], counts) + within
    unlike = (ours.names[left] != theirs.names[right]) | (ours.kinds[left] != theirs.kinds[right])
    gaps = ours.gaps[left] | theirs.gaps[right]
    other = ((ours.bits[left] != theirs.bits[right]) | (ours.odd[left] != theirs.odd[right])) & ~gaps
    plain = (_sums(unlike, ends, counts) == 0) & (counts <= MAX_SLOTS)
    unseen = gaps & ~(ours.unwritten[left] & theirs.unwritten[right])
    bit = np.uint64(1) << np.minimum(within, MAX_SLOTS).astype(np.uint64)
    return plain, *(_sums(np.where(slots, bit, np.uint64(0)), ends, counts) for slots in (other, gaps, unseen))


def _sums(values: Numbers, ends: Numbers, counts: Numbers) -> Numbers:
    totals = np.concatenate((np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)))
    sums: Numbers = totals[ends] - totals[ends - counts]
    return sums
