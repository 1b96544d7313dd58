"""Tells which ranks hold replicas of one parameter or buffer, and how that is known (CP-25): pure rules.

Declared: a wrapper keeps them alike on a group, a placement replicates the same shard along a dimension of a mesh, or
every rank of a data-parallel dimension all-reduces the parameter's gradient over it, as calls show.
Observed: undeclared, and alike with one dtype and shape when first recorded. Parameters that are filled with one value
start alike without being replicas; they count once they have changed, and are still alike.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from paritrace.compare.checks_heads import Geometry, Head, Holding
from paritrace.compare.checks_joined import Joined
from paritrace.compare.checks_meshes import DATA_PARALLEL, RankSet, along
from paritrace.compare.state_groups import PARAMETER
from paritrace.evidence.distributed import Placement, Replicated

REPLICATE, PARTIAL = "R", "P"
OBSERVED = "undeclared; alike when first recorded"


class Relation(Struct, frozen=True):
    """What is known of one name between the ranks that hold it.

    `undeclared_fills`: ranks that hold it filled with one value, undeclared. `unlike`: ranks that hold it, undeclared,
    and start with different values: shards, or parameters of their own, which nothing tells apart.
    """

    group: str
    name: str
    sets: tuple[RankSet, ...] = ()
    undeclared_fills: tuple[int, ...] = ()
    unlike: tuple[int, ...] = ()


class Replicas:
    """The relations of every parameter and buffer; `set_of` numbers the sets so that states can be told apart."""

    def __init__(self, heads: Iterable[Head]) -> None:
        self.heads = {head.rank: head for head in sorted(heads, key=lambda head: head.rank)}
        holders: dict[tuple[str, str], list[int]] = defaultdict(list)
        for head in self.heads.values():
            for key in head.holdings:
                holders[key].append(head.rank)
        self.relations = [_relation(key, self.heads, ranks) for key, ranks in holders.items() if len(ranks) > 1]
        self.sets: list[RankSet] = []
        self._numbers: dict[tuple[int, str, str], int] = {}
        for relation in self.relations:
            for one in relation.sets:
                self._number(relation, one)
        self.left_out = _left_out(self.heads.values())

    def set_of(self, rank: int, group: str, name: str, /) -> int:
        """Returns the number of the set of replicas that this rank holds it in, -1 when there is none."""
        return self._numbers.get((rank, group, name), -1)

    def _number(self, relation: Relation, one: RankSet) -> None:
        for rank in one.ranks:
            self._numbers[rank, relation.group, relation.name] = len(self.sets)
        self.sets.append(one)


def _left_out(heads: Iterable[Head]) -> dict[str, str]:
    """Returns the parameters that a wrapper was told not to reduce, and the wrapper."""
    return {name: mark.basis for head in heads for mark in head.layout.replicated for name in mark.left_out}


def _relation(key: tuple[str, str], heads: Mapping[int, Head], ranks: Sequence[int]) -> Relation:
    by_geometry: dict[Geometry, list[int]] = defaultdict(list)
    for rank in ranks:
        by_geometry[heads[rank].holdings[key].geometry].append(rank)
    found = [_alike(key, heads, same) for same in by_geometry.values() if len(same) > 1]
    return Relation(
        group=key[0],
        name=key[1],
        sets=tuple(one for relation in found for one in relation.sets),
        undeclared_fills=tuple(rank for relation in found for rank in relation.undeclared_fills),
        unlike=tuple(rank for relation in found for rank in relation.unlike),
    )


def _alike(key: tuple[str, str], heads: Mapping[int, Head], ranks: Sequence[int]) -> Relation:
    """Relates ranks that hold tensors of one dtype and shape under one name."""
    joined, bases = Joined(ranks), dict[int, set[str]]()
    undeclared: dict[tuple[int, str], list[int]] = defaultdict(list)
    fills: list[int] = []
    for rank in ranks:
        head, holding = heads[rank], heads[rank].holdings[key]
        links = list(_declared(key, head, heads))
        for basis, others in links:
            joined.join((rank, *_same_placement(key, holding, heads, others)))
            bases.setdefault(rank, set()).add(basis)
        if links or holding.placement is not None or not holding.value:
            continue
        if holding.is_filled:
            fills.append(rank)
        else:
            undeclared[holding.step, holding.value].append(rank)
    for same in undeclared.values():
        joined.join(same)
    sets = [RankSet(tuple(sorted(one)), _basis(one, bases)) for one in joined.sets() if len(one) > 1]
    alone = {rank for one in joined.sets() if len(one) == 1 for rank in one}
    unlike = [rank for same in undeclared.values() for rank in same if rank in alone]
    return Relation(
        *key,
        sets=tuple(sets),
        undeclared_fills=tuple(rank for rank in fills if rank in alone),
        unlike=tuple(sorted(unlike)) if len(undeclared) > 1 else (),
    )


def _basis(ranks: Iterable[int], bases: Mapping[int, set[str]]) -> str:
    return ", ".join(sorted({basis for rank in ranks for basis in bases.get(rank, ())})) or OBSERVED


def _declared(key: tuple[str, str], head: Head, heads: Mapping[int, Head]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields what declares this rank's parameter a replica: the basis, and the ranks it speaks of."""
    group, name = key
    for mark in head.layout.replicated if group == PARAMETER else ():
        reduced = head.layout.groups.get(mark.group)
        if reduced is not None and _names(mark, name):
            yield f"{mark.basis} over group {reduced.key}", reduced.ranks
    if group == PARAMETER:
        yield from _reduced_by_hand(name, head, heads)
    placement = head.holdings[key].placement
    mesh = head.layout.meshes.get(placement.mesh) if placement is not None else None
    if placement is None or mesh is None or any(one.startswith(PARTIAL) for one in placement.placements):
        return
    for dim, one in enumerate(placement.placements[: len(mesh.dims)]):
        related = along(head, mesh, dim, heads=heads) if one == REPLICATE else ()
        if related:
            yield f"placed {one} along mesh dimension {mesh.dims[dim] or dim}", related


def _reduced_by_hand(name: str, head: Head, heads: Mapping[int, Head]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields the ranks of a data-parallel dimension over which each of them all-reduces this parameter's gradient."""
    for mesh in head.layout.meshes.values():
        for dim, called in enumerate(mesh.dims):
            group = head.layout.groups.get(mesh.groups[dim]) if dim < len(mesh.groups) else None
            if called not in DATA_PARALLEL or group is None or len(group.ranks) < 2:
                continue
            if all(_reduces(heads.get(rank), group.key, name) for rank in group.ranks):
                yield f"its gradient is all-reduced along mesh dimension {called}", group.ranks


def _reduces(head: Head | None, key: str, name: str) -> bool:
    """Whether a rank all-reduces a gradient over the group of this key."""
    return head is not None and any(
        name in names and (group := head.layout.groups.get(number)) is not None and group.key == key
        for number, names in head.reduced.by_group.items()
    )


def _names(mark: Replicated, name: str) -> bool:
    return name in mark.names and name not in mark.left_out


def _same_placement(
    key: tuple[str, str], holding: Holding, heads: Mapping[int, Head], ranks: Iterable[int]
) -> Iterator[int]:
    """Yields those of the ranks that place it as this one does: the same shard of the same whole."""
    for rank in ranks:
        head = heads.get(rank)
        other = head.holdings.get(key) if head is not None else None
        if other is not None and _shard(other.placement) == _shard(holding.placement):
            yield rank


def _shard(placement: Placement | None) -> tuple[object, ...]:
    return () if placement is None else (placement.placements, placement.shape, placement.offset)
