"""The state of one correspondence: partners, bases and reasons of both sides."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from paritrace.correspondence.records import Records
from paritrace.correspondence.vocabulary import Basis, Unpaired

BASES = tuple(Basis)
CODES = {basis: code for code, basis in enumerate(BASES, 1)}
Places = npt.NDArray[np.int64]


class Bases(Mapping[int, Basis]):
    """Why each record of `a` is paired, a byte for each in `codes`: 1 + its place in `BASES`, 0 without a partner."""

    def __init__(self, size: int) -> None:
        self.codes = np.zeros(size, dtype=np.uint8)
        self._single = self.codes.data

    def __getitem__(self, i: int) -> Basis:
        code = self._single[i] if 0 <= i < len(self._single) else 0
        if not code:
            raise KeyError(i)
        return BASES[code - 1]

    def __setitem__(self, i: int, basis: Basis) -> None:
        self._single[i] = CODES[basis]

    def set_all(self, places: Places, basis: Basis) -> None:
        """Give many records one basis."""
        self.codes[places] = CODES[basis]

    def counts(self) -> Counter[Basis]:
        """How many pairs stand on each basis."""
        counts = np.bincount(self.codes, minlength=len(BASES) + 1).tolist()
        return Counter({basis: count for basis, count in zip(BASES, counts[1:], strict=True) if count})

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.codes).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.codes))


@dataclass(slots=True)
class Pairing:
    """Which record of `a` answers to which of `b`. Symmetric: the same object read from the other side."""

    a: Records
    b: Records
    partner_a: "array[int]" = field(init=False)
    partner_b: "array[int]" = field(init=False)
    basis: Bases = field(init=False)  # by index in `a`
    reordered: set[int] = field(init=False)  # indices in `a`
    reasons_a: dict[int, Unpaired] = field(init=False)
    reasons_b: dict[int, Unpaired] = field(init=False)
    scope_pairs: list[tuple[object, int, int]] = field(init=False)  # (stream, scope of a, scope of b)
    fresh: list[tuple[int, int]] = field(init=False)  # pairs whose consequences were not followed yet

    def __post_init__(self) -> None:
        self.partner_a = array("q", [-1]) * len(self.a)
        self.partner_b = array("q", [-1]) * len(self.b)
        self.basis = Bases(len(self.a))
        self.reordered = set()
        self.reasons_a = {}
        self.reasons_b = {}
        self.scope_pairs = []
        self.fresh = []

    def pair(self, i: int, j: int, *, basis: Basis, reordered: bool = False) -> None:
        """Pair record `i` of a with record `j` of b; neither has a partner yet."""
        self.partner_a[i] = j
        self.partner_b[j] = i
        self.basis[i] = basis
        if reordered:
            self.reordered.add(i)
        self.fresh.append((i, j))

    def pair_all(self, a: Places, b: Places, *, basis: Basis) -> None:
        """Pair many records in place, of which none has a partner yet; nobody follows what links to them."""
        np.asarray(self.partner_a)[a] = b
        np.asarray(self.partner_b)[b] = a
        self.basis.set_all(a, basis)

    def unpaired(self, side: int) -> list[int]:
        """The records of a side (0: a) that have no partner, rising."""
        found: list[int] = np.flatnonzero(np.asarray((self.partner_a, self.partner_b)[side]) < 0).tolist()
        return found

    def leave(self, a: Iterable[int], b: Iterable[int], reason: Unpaired) -> None:
        """Say why these records of each side have no partner; a later rule may still find one."""
        for i in a:
            self.reasons_a[i] = reason
        for j in b:
            self.reasons_b[j] = reason

    def reason_a(self, i: int) -> Unpaired:
        """Why record `i` of a is unpaired."""
        return self.reasons_a.get(i, Unpaired.NO_ANCHOR)

    def reason_b(self, j: int) -> Unpaired:
        """Why record `j` of b is unpaired."""
        return self.reasons_b.get(j, Unpaired.NO_ANCHOR)
