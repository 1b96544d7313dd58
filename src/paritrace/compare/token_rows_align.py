"""Which row of one side is which of the other: by sample and position, never by place, order or value (CP-27): pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paritrace.compare.token_rows_load import Bits, Part, Values, Whole

POSITION_BITS = 32
Flags = npt.NDArray[np.bool_]


class Samples:
    """Numbers for the names of samples, shared by both sides."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self.names: list[str] = []

    def codes(self, names: Sequence[str]) -> Whole:
        return np.array([self._code(name) for name in names], dtype=np.int64)

    def _code(self, name: str) -> int:
        if name not in self._codes:
            self._codes[name] = len(self.names)
            self.names.append(name)
        return self._codes[name]

    def of_key(self, key: int) -> tuple[str, int]:
        """The sample and the position of a key."""
        return self.names[key >> POSITION_BITS], key & ((1 << POSITION_BITS) - 1)


@dataclass(frozen=True, slots=True)
class Column:
    """One output of one side at one step: one entry for each token, by rising key (sample, position).

    `ambiguous`: the token is there several times, with other contents, and none of them can be told to be meant.
    `values` has as many columns as the widest part; what a row has not is NaN. `part` numbers `parts`, `at` the row in
    it.
    """

    keys: Whole
    bits: Bits
    norms: Values
    values: Values
    part: Whole
    at: Whole
    ambiguous: Flags
    parts: tuple[Part, ...]

    def part_of(self, row: int) -> Part:
        return self.parts[int(self.part[row])]

    def has_tops(self, rows: Whole) -> bool:
        """Whether all these rows are of parts that keep what a choice is made from."""
        held = [self.part_of(row) for row in rows.tolist()]
        return bool(held) and all(part.tops.size for part in held)

    def top(self, row: int) -> tuple[int, float]:
        """The place of the largest element of a row, and its lead."""
        part, at = self.part_of(row), int(self.at[row])
        return int(part.tops[at]), float(part.margins[at])


def column(parts: Sequence[Part], samples: Samples) -> Column:
    """Put the parts of one output together; rows of one token that agree in every bit are one."""
    keys = np.concatenate([_keys(part, samples) for part in parts])
    owner = np.concatenate([np.full(part.index.size, number, dtype=np.int64) for number, part in enumerate(parts)])
    at = np.concatenate([np.arange(part.index.size) for part in parts])
    bits = np.concatenate([part.bits for part in parts])
    kinds = _variants(parts)[owner]
    order = np.argsort(keys, kind="stable")
    found, first = np.unique(keys[order], return_index=True)
    alike = _alike(bits[order], first) & _alike(kinds[order].astype(np.uint64), first)
    kept = order[first]
    return Column(
        keys=found,
        bits=bits[kept],
        norms=np.concatenate([part.norms for part in parts])[kept],
        values=_values(parts)[kept],
        part=owner[kept],
        at=at[kept],
        ambiguous=~alike,
        parts=tuple(parts),
    )


def _keys(part: Part, samples: Samples) -> Whole:
    codes = samples.codes(part.samples)
    return (codes[part.index] << POSITION_BITS) | part.positions if part.index.size else np.zeros(0, dtype=np.int64)


def _variants(parts: Sequence[Part]) -> Whole:
    """A number for each part's dtype, length of a row and semantics."""
    known: dict[tuple[str, int, str | None], int] = {}
    return np.array([known.setdefault(part.variant, len(known)) for part in parts], dtype=np.int64)


def _alike(values: Bits, first: npt.NDArray[np.intp]) -> Flags:
    """For each run of equal keys, whether its values are all equal."""
    if not first.size:
        return np.zeros(0, dtype=np.bool_)
    return np.equal(np.minimum.reduceat(values, first), np.maximum.reduceat(values, first))


def _values(parts: Sequence[Part]) -> Values:
    width = max((0 if part.values is None else part.values.shape[1] for part in parts), default=0)
    blocks: list[Values] = []
    for part in parts:
        block = np.full((part.index.size, width), np.nan)
        if part.values is not None:
            block[:, : part.values.shape[1]] = part.values
        blocks.append(block)
    return np.concatenate(blocks)


@dataclass(frozen=True, slots=True)
class Aligned:
    """`ours` and `theirs` are rows of the columns, token by token; the other counts are of tokens without a partner."""

    ours: Whole
    theirs: Whole
    keys: Whole
    ambiguous: Whole  # keys that both have, one of them several times
    only_ours: Whole
    only_theirs: Whole


def align(ours: Column, theirs: Column) -> Aligned:
    """Pair the tokens that both sides have; a token that is there several times, unlike, has no partner."""
    shared, left, right = np.intersect1d(ours.keys, theirs.keys, assume_unique=True, return_indices=True)
    several = ours.ambiguous[left] | theirs.ambiguous[right]
    return Aligned(
        ours=left[~several].astype(np.int64),
        theirs=right[~several].astype(np.int64),
        keys=shared[~several],
        ambiguous=shared[several],
        only_ours=np.setdiff1d(ours.keys, theirs.keys, assume_unique=True),
        only_theirs=np.setdiff1d(theirs.keys, ours.keys, assume_unique=True),
    )
