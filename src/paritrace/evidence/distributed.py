"""Records of distributed training: groups, meshes, placements, replicas, collectives (CA-3, CA-31).

A record of this module stands on an earlier line than what refers to it, and its ids are those of one session.
"""

from paritrace.evidence.definition import Definition


class Group(Definition, frozen=True, tag="group"):
    """A process group that this rank belongs to.

    `key` is spelt alike in every run and on every member: the dimension of a mesh (`dp`), else `world`, else
    `ranks 0,2`. `ranks` are global, by rank in the group. `label` is torch's own name: evidence only, never compared.
    """

    id: int
    key: str
    ranks: tuple[int, ...]
    backend: str
    label: str = ""


class Mesh(Definition, frozen=True, tag="mesh"):
    """A mesh of ranks and this rank's coordinate in it (CA-3).

    `basis`: "device_mesh", "declared" (`--mesh`) or "megatron". `groups` are the ids of this rank's `Group` along each
    dimension, -1 where none was made.
    """

    id: int
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coordinate: tuple[int, ...]
    basis: str
    groups: tuple[int, ...] = ()


class Placement(Definition, frozen=True, tag="placement"):
    """A kind of tensor is the local part of a distributed tensor; `Kind` describes the part that was read.

    `placements` has one entry for each dimension of the mesh: `S(0)`, `R` or `P(sum)`. `shape` is the whole tensor's,
    `offset` where the local part begins in it (both logical, in elements per dimension); `offset` is empty where the
    part is not one box.
    """

    kind: int
    mesh: int
    placements: tuple[str, ...]
    shape: tuple[int, ...]
    offset: tuple[int, ...]


class Replicated(Definition, frozen=True, tag="replicated"):
    """A wrapper keeps these parameters alike on all ranks of a group.

    `basis` names the wrapper ("ddp"). `left_out` are wrapped parameters that it was told not to reduce.
    """

    group: int
    names: tuple[str, ...]
    basis: str
    left_out: tuple[str, ...] = ()


class Collective(Definition, frozen=True, tag="collective"):
    """What makes a recorded call a collective or point-to-point operation; stands before its call's row.

    `operation`: `all_reduce`, `broadcast`, `all_gather`, `reduce_scatter`, `send` …; `reduce`: `sum`, `avg` …, or "".
    `ordinal` counts the operations of this group on this rank from 0. `root` and `peer` are global ranks, -1 for none.
    `parameters`: of a bucket of gradients, the parameters whose gradients it holds, in the order they lie in it.
    """

    call: int
    group: int
    operation: str
    ordinal: int
    reduce: str = ""
    root: int = -1
    peer: int = -1
    asynchronous: bool = False
    parameters: tuple[str, ...] = ()


class CollectiveCounts(Definition, frozen=True, tag="collective_counts"):
    """How many collectives each group made in one step, by the group's own sequence number: level `digest` (CA-2)."""

    step: int
    counts: dict[str, int]  # `Group.key` -> number
