"""Which ranks record level `op` in the black box's windows: one for each position that is not data-parallel (CA-36)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from paritrace.capture.declared_mesh import Dimensions

# Along these, ranks run the same operators on other data, so that one of them stands for all. Along any other (tensor,
# pipeline, context, expert) they run other operators or other parts of them.
DATA_PARALLEL = frozenset(
    {"dp", "ddp", "data", "data_parallel", "dp_replicate", "dp_shard", "fsdp", "hsdp", "replicate", "shard"}
)


@dataclass(frozen=True, slots=True)
class Covering:
    """The ranks, ascending, and why these in words."""

    ranks: tuple[int, ...]
    basis: str


def covering(world_size: int, mesh: Dimensions) -> Covering:
    """One rank per position along the dims that are not data-parallel; `mesh` has a place for each."""
    if world_size == 1:
        return Covering((0,), "one rank")
    if not mesh:
        return Covering((0,), "no mesh was declared (--mesh): rank 0 stands for data-parallel ranks")
    spelled = ",".join(f"{name}={size}" for name, size in mesh)
    ranks = [
        rank
        for rank, place in enumerate(product(*(range(size) for _, size in mesh)))
        if not any(at for at, (name, _) in zip(place, mesh, strict=True) if name in DATA_PARALLEL)
    ]
    return Covering(tuple(ranks), f"mesh {spelled}: coordinate 0 along its data-parallel dims")
