"""Meshes that a process has, found by their groups and by Megatron's getters (CA-3)."""

import gc
import sys
import weakref
from collections.abc import Iterator
from itertools import count
from types import ModuleType

import pytest
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from paritrace.capture.pytorch.groups import Groups
from paritrace.capture.pytorch.meshes import Meshes
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Group, Mesh


@pytest.fixture
def world() -> Iterator[None]:
    """Four ranks of which only rank 2 exists: torch's own back end for looking without communicating."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    yield
    dist.destroy_process_group()


class Seen:
    """A register of meshes and what it wrote."""

    def __init__(self) -> None:
        self.written: list[Definition] = []
        self.groups = Groups(self.written.append)
        self.meshes = Meshes(self.written.append, self.groups, new_id=count().__next__)

    @property
    def found(self) -> list[Mesh]:
        return [record for record in self.written if isinstance(record, Mesh)]

    @property
    def keys(self) -> dict[int, str]:
        return {record.id: record.key for record in self.written if isinstance(record, Group)}


def test_a_mesh_that_no_tensor_shows_is_found_by_its_groups(world: None) -> None:
    seen = Seen()
    seen.meshes.look()
    assert seen.found == []
    named = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    unnamed = init_device_mesh("cpu", (4,))
    assert named["dp"].size() == 2  # a slice, which is no mesh of its own
    seen.meshes.look()
    assert [(mesh.dims, mesh.shape, mesh.coordinate, mesh.basis) for mesh in seen.found] == [
        (("dim0",), (4,), (2,), "device_mesh"),
        (("dp", "tp"), (2, 2), (1, 0), "device_mesh"),
    ]
    assert [[seen.keys[group] for group in mesh.groups] for mesh in seen.found] == [["world"], ["dp", "tp"]]
    assert seen.meshes.of(unnamed) == seen.found[0].id
    seen.meshes.look()
    assert len(seen.found) == 2


def test_equal_meshes_are_one_and_a_slice_that_is_used_is_its_own(world: None) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    seen = Seen()
    assert seen.meshes.of(mesh) == seen.meshes.of(mesh) == 0
    assert seen.meshes.of(mesh["tp"]) == 1
    assert seen.meshes.of(mesh["tp"]) == 1, "torch makes a new slice each time"
    assert seen.found[1].dims == ("tp",)
    assert seen.found[1].groups == (seen.found[0].groups[1],)


def test_a_mesh_without_this_rank_has_no_coordinate(world: None) -> None:
    seen = Seen()
    seen.meshes.of(DeviceMesh("cpu", [0, 1], mesh_dim_names=("tp",)))
    assert (seen.found[0].coordinate, seen.found[0].groups) == ((), (-1,))


def test_no_mesh_is_kept_alive(world: None) -> None:
    seen = Seen()
    mesh = init_device_mesh("cpu", (2, 2))
    alive = weakref.ref(mesh)
    seen.meshes.look()
    assert seen.found
    del mesh
    gc.collect()
    assert alive() is None


@pytest.fixture
def megatron(world: None) -> Iterator[ModuleType]:
    """A module with the getters of Megatron's, as they are before its groups are made."""
    state = ModuleType("megatron.core.parallel_state")
    sizes = {
        "pipeline_model": (1, 0),
        "data": (2, 1),
        "context": (1, 0),
        "tensor_model": (2, 0),
        "expert_model": (2, 1),
    }
    vars(state)["groups"] = groups = dict[str, object]()

    def getter(value: int) -> object:
        def get(with_context_parallel: bool = False) -> int:
            assert groups, "groups are not initialized"
            return value

        return get

    for words, (size, place) in sizes.items():
        vars(state)[f"get_{words}_parallel_world_size"] = getter(size)
        vars(state)[f"get_{words}_parallel_rank"] = getter(place)
        vars(state)[f"get_{words}_parallel_group"] = lambda words=words: groups[words]
    sys.modules["megatron.core.parallel_state"] = state
    yield state
    del sys.modules["megatron.core.parallel_state"]


def test_megatrons_groups_are_a_mesh_and_its_experts_another(megatron: ModuleType) -> None:
    seen = Seen()
    seen.meshes.look()
    assert seen.found == [], "its groups are not made yet"
    groups = vars(megatron)["groups"]
    groups["tensor_model"], groups["data"] = dist.new_group([2, 3]), dist.new_group([0, 2])
    groups["expert_model"] = dist.new_group([0, 2])
    seen.meshes.look()
    dense, experts = seen.found
    assert (dense.dims, dense.shape, dense.coordinate) == (("pp", "dp", "cp", "tp"), (1, 2, 1, 2), (0, 1, 0, 0))
    assert dense.basis == "megatron"
    assert [seen.keys.get(group) for group in dense.groups] == [None, "ranks 0,2", None, "ranks 2,3"]
    assert (experts.dims, experts.shape, experts.coordinate) == (("ep",), (2,), (1,))


def test_nothing_distributed_is_no_mesh() -> None:
    seen = Seen()
    seen.meshes.look()
    assert seen.written == []
