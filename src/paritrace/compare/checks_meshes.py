"""Which ranks meshes and wrappers relate, and what dimensions are for (CA-3): pure rules."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from msgspec import Struct

from paritrace.compare.checks_heads import Head
from paritrace.compare.checks_joined import Joined
from paritrace.evidence.distributed import Mesh

# How meshes call their dimensions; any other name says nothing about what its ranks share.
DATA_PARALLEL = frozenset({"dp", "ddp", "fsdp", "data", "data_parallel", "dp_replicate", "dp_shard"})
TENSOR_PARALLEL = frozenset({"tp", "tensor", "tensor_parallel", "model_parallel"})
MEGATRON = "megatron"


class RankSet(Struct, frozen=True):
    """Ranks that belong together, rising, and how that is known."""

    ranks: tuple[int, ...]
    basis: str


def along(head: Head, mesh: Mesh, dim: int, /, *, heads: Mapping[int, Head]) -> tuple[int, ...]:
    """Returns the ranks that differ from this one in this dimension only; () when the records do not tell.

    A group of that dimension names them. Coordinates do only for a mesh that spans all ranks: those of a submesh come
    again in its siblings.
    """
    group = head.layout.groups.get(mesh.groups[dim]) if dim < len(mesh.groups) else None
    if group is not None:
        return group.ranks
    if prod(mesh.shape) < len(heads) or len(mesh.shape) != len(mesh.coordinate):
        return ()
    others = [other for other in heads.values() if _differs_only_in(dim, mesh, _same_mesh(other, mesh))]
    return tuple(other.rank for other in others)


def _same_mesh(head: Head, mesh: Mesh) -> Mesh | None:
    found = [
        one
        for one in head.layout.meshes.values()
        if (one.dims, one.shape, one.basis) == (mesh.dims, mesh.shape, mesh.basis)
    ]
    return found[0] if len(found) == 1 else None


def _differs_only_in(dim: int, mesh: Mesh, other: Mesh | None) -> bool:
    if other is None or len(other.coordinate) != len(mesh.coordinate):
        return False
    pairs = enumerate(zip(mesh.coordinate, other.coordinate, strict=True))
    return all(ours == theirs for place, (ours, theirs) in pairs if place != dim)


def sets_along(heads: Mapping[int, Head], names: Iterable[str], /) -> tuple[RankSet, ...]:
    """Returns the sets of ranks that meshes relate along dimensions of these names; sets of one are left out."""
    wanted = frozenset(names)
    joined = Joined(sorted(heads))
    bases: dict[int, set[str]] = {}
    for head in heads.values():
        for mesh in head.layout.meshes.values():
            for dim, name in enumerate(mesh.dims):
                related = along(head, mesh, dim, heads=heads) if name in wanted else ()
                if len(related) > 1:
                    joined.join((head.rank, *related))
                    bases.setdefault(head.rank, set()).add(f"mesh dimension {name} ({mesh.basis})")
    return _as_sets(joined.sets(), bases)


def wrapper_sets(heads: Mapping[int, Head], /) -> tuple[RankSet, ...]:
    """Returns the sets of ranks over which wrappers reduce gradients."""
    joined = Joined(sorted(heads))
    bases: dict[int, set[str]] = {}
    for head in heads.values():
        for mark in head.layout.replicated:
            group = head.layout.groups.get(mark.group)
            if group is not None:
                joined.join((head.rank, *group.ranks))
                bases.setdefault(head.rank, set()).add(f"{mark.basis} over group {group.key}")
    return _as_sets(joined.sets(), bases)


def _as_sets(found: Sequence[Sequence[int]], bases: Mapping[int, set[str]]) -> tuple[RankSet, ...]:
    return tuple(
        RankSet(tuple(sorted(ranks)), ", ".join(sorted({basis for rank in ranks for basis in bases.get(rank, ())})))
        for ranks in found
        if len(ranks) > 1
    )
