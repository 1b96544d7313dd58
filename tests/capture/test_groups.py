"""The register of process groups: what a group is called, and that it is defined once (CA-3, CA-31)."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.utils._python_dispatch import TorchDispatchMode

from paritrace.capture.pytorch.groups import NO_GROUP, Groups, num_registered
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Group

in_memory = vars(dist)["HashStore"]  # a store of one process, which torch exports without saying so


@pytest.fixture
def world() -> Iterator[None]:
    """A world of one rank, in this process."""
    dist.init_process_group("gloo", store=in_memory(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def fake_world() -> Iterator[None]:
    """Four ranks of which only this one exists: torch's own back end for looking without communicating."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    yield
    dist.destroy_process_group()


class Boxed(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps the group as the dispatcher hands it on."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.groups: list[object] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.groups += [item for item in args if isinstance(item, torch.ScriptObject)]
        return func(*args, **(kwargs or {}))


def test_nothing_distributed_has_no_group() -> None:
    emitted: list[Definition] = []
    groups = Groups(emitted.append)
    assert [groups.of(item) for item in (None, "0", object(), dist.group.WORLD)] == [NO_GROUP] * 4
    assert num_registered() == 0
    assert emitted == []


def test_every_spelling_of_a_group_is_the_same_group(world: None) -> None:
    emitted: list[Definition] = []
    groups = Groups(emitted.append)
    default = dist.distributed_c10d._get_default_group()
    with Boxed() as boxed:
        dist.all_reduce(torch.ones(2))
    assert boxed.groups
    assert [groups.of(default), *(groups.of(item) for item in boxed.groups[:1])] == [0, 0]
    assert groups.of(default.group_name) == 0
    assert groups.of("no group of this name") == NO_GROUP
    assert groups.of(boxed.groups[1]) == NO_GROUP, "the reduction is boxed as well, and is no group"
    assert emitted == [Group(0, "world", (0,), "gloo", default.group_name)]
    assert groups[0].key == "world"


def test_keys_follow_the_order_in_which_groups_were_made_not_the_one_asked_in(fake_world: None) -> None:
    """Members that use two like groups in another order must not exchange their names."""
    pair, again, other = dist.new_group([0, 2]), dist.new_group([2, 0]), dist.new_group([2, 3])
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    unnamed = init_device_mesh("cpu", (2, 2))
    second = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    asked = {
        "tp#2": second.get_group("tp"),
        "ranks 0,2#2": again,
        "ranks 0,2": pair,
        "ranks 2,3": other,
        "dim1": unnamed.get_group(1),
        "tp": mesh.get_group("tp"),
        "dp": mesh.get_group("dp"),
        "world": dist.group.WORLD,
    }
    emitted: list[Definition] = []
    groups = Groups(emitted.append)
    ids = {key: groups.of(group) for key, group in asked.items()}
    assert {key: groups[made].key for key, made in ids.items()} == {key: key for key in asked}
    assert [record.id for record in emitted if isinstance(record, Group)] == list(range(len(asked)))
    assert groups[ids["tp"]].ranks == (2, 3)
    assert groups[ids["dp"]].ranks == (0, 2)
    assert groups[ids["world"]].ranks == (0, 1, 2, 3)
    assert len(emitted) == len(asked), "each once"


def test_a_world_that_is_made_anew_is_the_world_again() -> None:
    emitted: list[Definition] = []
    groups = Groups(emitted.append)
    for _ in range(2):
        dist.init_process_group("gloo", store=in_memory(), rank=0, world_size=1)
        assert groups.of(dist.distributed_c10d._get_default_group()) == 0
        dist.destroy_process_group()
    assert len(emitted) == 1


def test_a_group_that_torch_does_not_know_is_said_to_be_unregistered(world: None) -> None:
    emitted: list[Definition] = []
    groups = Groups(emitted.append)
    made = groups.of(dist.ProcessGroup(in_memory(), 0, 1))
    assert emitted == [Group(made, "unregistered", (), "")]
