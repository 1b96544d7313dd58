"""The state of one correspondence: partners, bases and reasons of both sides."""

from dataclasses import dataclass, field

from paritrace.correspondence.records import Records
from paritrace.correspondence.vocabulary import Basis, Unpaired


@dataclass(slots=True)
class Pairing:
    """Which record of `a` answers to which of `b`. Symmetric: the same object read from the other side."""

    a: Records
    b: Records
    partner_a: list[int] = field(init=False)
    partner_b: list[int] = field(init=False)
    basis: dict[int, Basis] = field(init=False)  # by index in `a`
    reordered: set[int] = field(init=False)  # indices in `a`
    reasons_a: dict[int, Unpaired] = field(init=False)
    reasons_b: dict[int, Unpaired] = field(init=False)
    scope_pairs: list[tuple[object, int, int]] = field(init=False)  # (stream, scope of a, scope of b)
    fresh: list[tuple[int, int]] = field(init=False)  # pairs whose consequences were not followed yet

    def __post_init__(self) -> None:
        self.partner_a = [-1] * len(self.a)
        self.partner_b = [-1] * len(self.b)
        self.basis = {}
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

    def leave(self, a: list[int], b: list[int], reason: Unpaired) -> None:
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
