"""Holds the collectives of each group against each other, member by member (CP-25, CA-31).

What the first member made is kept for the others to be compared with: its signature, its site and the bits of its
outputs. Memory grows with the collectives of one member of each group, not with the members. What is found does not
depend on the order in which members are read; which site is told of those that agree does: read by rising rank.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from paritrace.compare.checks_sharing import Sharing
from paritrace.evidence.calls import Kind
from paritrace.evidence.distributed import Collective, Group

POINT_TO_POINT = frozenset({"send", "recv", "isend", "irecv", "recv_any_source"})
# Operations whose members pass tensors of one shape; a root of gather or scatter rightly passes other ones.
OF_ONE_SHAPE = frozenset({"all_reduce", "broadcast", "all_gather", "reduce_scatter", "reduce"})
WITH_ONE_RESULT = frozenset({"all_reduce", "broadcast", "all_gather"})
PENDING_KEPT = 20  # of the operations that never completed, by rank; all are counted

GroupKey = tuple[str, tuple[int, ...]]  # key and ranks
TensorKind = tuple[str, tuple[int, ...]]


class Signature(NamedTuple):
    """What members of a group must agree in. `parameters` is compared where both know what a bucket holds."""

    operation: str
    reduce: str
    root: int
    tensors: tuple[TensorKind, ...]
    parameters: tuple[str, ...]

    def agrees(self, other: "Signature") -> bool:
        known = self.parameters and other.parameters
        return self[:4] == other[:4] and (not known or self.parameters == other.parameters)


class Made(NamedTuple):
    """One operation of a group: the nth, in the group's own count without point-to-point operations."""

    signature: Signature
    site: str
    step: int


class Member(Struct):
    """What one rank made in one group. `whole`: its journal was closed by its writer, without a loss."""

    rank: int
    whole: bool
    count: int = 0
    num_point_to_point: int = 0


class Mismatch(NamedTuple):
    """The first operation of a group in which members disagree: what each side made, by ranks."""

    nth: int
    sides: tuple[tuple[tuple[int, ...], Made], ...]


class UnlikeResult(NamedTuple):
    """The first operation of a group that gave other bits on some members."""

    nth: int
    made: Made
    sides: tuple[tuple[int, ...], ...]


class Pending(NamedTuple):
    """An operation that one rank never saw completed."""

    rank: int
    group: GroupKey
    nth: int
    made: Made


class GroupFacts:
    """One group over all its members."""

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.members: dict[int, Member] = {}
        self.made: dict[int, Made] = {}
        self.completed: set[int] = set()  # by some member
        self.num_results = 0
        self._ranks: dict[int, int] = {}  # index -> bits of the ranks that made it
        self._unlike: tuple[int, dict[int, Made]] | None = None
        self._bits: dict[int, tuple[object, ...]] = {}
        self._bit_ranks: dict[int, int] = {}
        self._unlike_bits: tuple[int, dict[int, tuple[object, ...]]] | None = None

    def see(self, rank: int, index: int, made: Made) -> None:
        """Takes what a member made as its `index`th."""
        self._ranks[index] = self._ranks.get(index, 0) | 1 << rank
        kept = self.made.setdefault(index, made)
        if made.signature.agrees(kept.signature):
            return
        if self._unlike is None or index < self._unlike[0]:
            self._unlike = (index, {})
        if index == self._unlike[0]:
            self._unlike[1][rank] = made

    def see_result(self, rank: int, index: int, bits: tuple[object, ...]) -> None:
        """Takes what the outputs held when it had completed."""
        self._bit_ranks[index] = self._bit_ranks.get(index, 0) | 1 << rank
        kept = self._bits.setdefault(index, bits)
        self.num_results += self._bit_ranks[index].bit_count() == 2
        if bits == kept:
            return
        if self._unlike_bits is None or index < self._unlike_bits[0]:
            self._unlike_bits = (index, {})
        if index == self._unlike_bits[0]:
            self._unlike_bits[1][rank] = bits

    def num_compared(self) -> int:
        """Returns how many operations two members or more made."""
        return sum(bits.bit_count() > 1 for bits in self._ranks.values())

    def mismatch(self) -> Mismatch | None:
        """Returns the first disagreement."""
        if self._unlike is None:
            return None
        index, others = self._unlike
        sides = _sides(self._ranks[index], others)
        return Mismatch(index, tuple((side, others.get(side[0], self.made[index])) for side in sides))

    def unlike_result(self) -> UnlikeResult | None:
        """Returns the first result that differs between members."""
        if self._unlike_bits is None:
            return None
        index, others = self._unlike_bits
        return UnlikeResult(index, self.made[index], _sides(self._bit_ranks[index], others))


def _sides(showed: int, others: Mapping[int, object]) -> tuple[tuple[int, ...], ...]:
    sharing: Sharing[int, object] = Sharing()
    for rank in range(showed.bit_length()):
        if showed >> rank & 1:
            sharing.see(rank, 0, others.get(rank))
    return tuple(sharing.sides(0, among=showed))


class Collectives:
    """Every group of every session."""

    def __init__(self) -> None:
        self.groups: dict[GroupKey, GroupFacts] = {}
        self.counts: Sharing[tuple[GroupKey, int], int] = Sharing()  # (group, step) -> number of operations
        self.pending: list[Pending] = []
        self.num_pending: dict[int, int] = {}

    def group(self, group: Group, /) -> GroupFacts:
        """Returns the facts of a group, made when it is first met."""
        key = (group.key, group.ranks)
        return self.groups.setdefault(key, GroupFacts(key))


def signature_of(record: Collective, tensors: list[Kind | None], /) -> Signature:
    """Returns what members must agree in."""
    kinds = tuple(("", ()) if kind is None else (kind.dtype, kind.shape) for kind in tensors)
    shapes = kinds if record.operation in OF_ONE_SHAPE else ()
    return Signature(record.operation, record.reduce, record.root, shapes, record.parameters)
