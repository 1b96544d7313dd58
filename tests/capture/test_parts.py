"""Distributed tensors as kinds: the local part read by address, placed in the whole (CA-5, CA-28, CA-31, CA-33)."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement, _MaskPartial, _StridedShard
from torch.utils._python_dispatch import TorchDispatchMode

from paritrace.capture.pytorch.kinds import Kinds
from paritrace.capture.pytorch.memory import holds_bytes
from paritrace.capture.pytorch.parts import part_of, value_of
from paritrace.capture.pytorch.summarising import Summarising
from paritrace.evidence import calls
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Group, Mesh
from paritrace.evidence.distributed import Placement as Placed
from paritrace.evidence.fingerprints import sample_indices
from paritrace.evidence.gaps import CaptureGap

SIZES, RANK, COORDINATE = (2, 2), 2, (1, 0)


@pytest.fixture
def mesh() -> Iterator[DeviceMesh]:
    """A mesh of four ranks of which only rank 2 exists: torch's own back end for looking without communicating."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=RANK, world_size=4)
    yield init_device_mesh("cpu", SIZES, mesh_dim_names=("dp", "tp"))
    dist.destroy_process_group()


class Nothing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """No operator may be dispatched."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"dispatched {func}")


def local(tensor: torch.Tensor, mesh: DeviceMesh, *placements: Placement, shape: tuple[int, ...]) -> DTensor:
    whole = torch.empty(shape, device="meta")
    return DTensor.from_local(tensor, mesh, placements, run_check=False, shape=whole.size(), stride=whole.stride())


def read(tensor: torch.Tensor) -> tuple[list[Definition], calls.Detail]:
    """What a kind and a summary of a tensor write, with nothing dispatched."""
    written: list[Definition] = []
    with Nothing():  # type: ignore[no-untyped-call]
        kind = Kinds(written.append).of(tensor)
        part = part_of(tensor)
        assert kind.readable
        assert holds_bytes(part, kind.geometry, part.data_ptr())
        detail, _ = Summarising(4).detail(part, kind, call=0, side="i", slot=0)
    return written, detail


MASKED = _MaskPartial(offset_shape=torch.Size((3,)))  # type: ignore[no-untyped-call]
PLACED: list[tuple[tuple[Placement, ...], tuple[int, ...], tuple[int, ...], tuple[str, ...], tuple[int, ...]]] = [
    ((Shard(0), Replicate()), (8, 3), (4, 3), ("S(0)", "R"), (4, 0)),
    ((Shard(0), Shard(1)), (8, 5), (4, 3), ("S(0)", "S(1)"), (4, 0)),
    ((Shard(1), Shard(1)), (2, 7), (2, 2), ("S(1)", "S(1)"), (0, 4)),  # 7 = 4 + 3, then 3 = 2 + 1
    ((Shard(0), Replicate()), (1, 4), (0, 4), ("S(0)", "R"), (1, 0)),  # nothing is left for the second rank
    ((Replicate(), Replicate()), (3,), (3,), ("R", "R"), (0,)),
    ((Replicate(), Partial("sum")), (3,), (3,), ("R", "P(sum)"), (0,)),
    ((Partial("avg"), Replicate()), (), (), ("P(avg)", "R"), ()),
    ((_StridedShard(0, split_factor=2), Shard(0)), (8, 2), (2, 2), ("_S(0,2)", "S(0)"), (2, 0)),
    ((_StridedShard(0, split_factor=2), Replicate()), (8, 2), (4, 2), ("_S(0,2)", "R"), ()),  # no box
    ((Replicate(), MASKED), (3,), (3,), ("R", "P(_MaskPartial)"), ()),
    ((Shard(0), Replicate()), (8, 2), (3, 2), ("S(0)", "R"), ()),  # cut by hand: not where torch would cut
]


@pytest.mark.parametrize(("placements", "shape", "part", "texts", "offset"), PLACED)
def test_a_distributed_tensor_is_read_as_its_local_part(
    mesh: DeviceMesh,
    placements: tuple[Placement, ...],
    shape: tuple[int, ...],
    part: tuple[int, ...],
    texts: tuple[str, ...],
    offset: tuple[int, ...],
) -> None:
    """CA-5: the kind describes the local part, the placement says where it lies; nothing is dispatched (CA-34)."""
    values = torch.arange(torch.Size(part).numel(), dtype=torch.float32).reshape(part)
    written, detail = read(local(values, mesh, *placements, shape=shape))
    *groups, of_mesh, kind, placed = written
    assert [group.key for group in groups if isinstance(group, Group)] == ["dp", "tp"]
    assert of_mesh == Mesh(0, ("dp", "tp"), SIZES, COORDINATE, "device_mesh", (0, 1))
    assert isinstance(kind, calls.Kind)
    assert (kind.shape, kind.tensor_class, kind.num_elements) == (part, "DTensor", values.numel())
    assert placed == Placed(kind.id, 0, texts, shape, offset)
    assert detail.elements == read(values)[1].elements
    assert detail.moments == read(values)[1].moments


def test_samples_are_those_of_the_whole_that_lie_in_the_part(mesh: DeviceMesh) -> None:
    """CA-28: the second half of 1000 elements holds the whole's samples from 500 on, in rising order."""
    whole = torch.arange(1000, dtype=torch.float32)
    _, detail = read(local(whole[500:].clone(), mesh, Shard(0), Replicate(), shape=(1000,)))
    expected = torch.tensor([float(index) for index in sample_indices(1000) if index >= 500])
    assert bytes.fromhex(detail.samples) == bytes(expected.view(torch.uint8).tolist())
    _, replicated = read(local(whole, mesh, Replicate(), Replicate(), shape=(1000,)))
    assert replicated.samples == read(whole)[1].samples


def test_equal_bytes_placed_elsewhere_are_sampled_anew(mesh: DeviceMesh) -> None:
    """A summary is taken over within a step for equal bytes: not its samples, where these are others."""
    values = torch.arange(500, dtype=torch.float32)
    kinds, summaries = Kinds(lambda _: None), Summarising(4)
    tensors = (values, local(values, mesh, Shard(0), Replicate(), shape=(1000,)))
    details = [summaries.detail(part_of(tensor), kinds.of(tensor), call=0, side="i", slot=0)[0] for tensor in tensors]
    assert details[0].samples != details[1].samples
    assert [detail.samples for detail in details] == [read(tensor)[1].samples for tensor in tensors]


def test_kinds_differ_by_placement_and_are_defined_once(mesh: DeviceMesh) -> None:
    written: list[Definition] = []
    kinds = Kinds(written.append)
    values = torch.ones(4, 4)
    tensors = [
        local(values, mesh, *placements, shape=shape)
        for placements, shape in (
            ((Replicate(), Replicate()), (4, 4)),
            ((Shard(0), Replicate()), (8, 4)),
            ((Shard(1), Replicate()), (4, 8)),
        )
    ]
    ids = [kinds.of(tensor).id for tensor in (values, *tensors, *tensors, values)]
    assert ids == [0, 1, 2, 3, 1, 2, 3, 0]
    assert sum(isinstance(record, Mesh) for record in written) == 1
    assert [record.kind for record in written if isinstance(record, Placed)] == [1, 2, 3]
    assert [kinds.of(tensor).whole for tensor in (values, *tensors)] == [True, True, False, False]


def test_a_result_that_nobody_waited_for_is_in_flight(mesh: DeviceMesh) -> None:
    """CA-31: neither read nor waited for; once the workload has waited it is an ordinary tensor."""
    pending = AsyncCollectiveTensor(torch.ones(3))
    placed = local(torch.ones(3), mesh, Replicate(), Replicate(), shape=(3,))
    placed._local_tensor = pending
    kinds = Kinds(lambda _: None)
    for tensor in (pending, placed):
        kind = kinds.of(tensor)
        assert kind.geometry.gap is not None
        assert (kind.readable, kind.geometry.gap.gap) == (False, CaptureGap.IN_FLIGHT)
        assert value_of(tensor) is None
    assert not pending.completed
    pending.completed = True
    assert [kinds.of(tensor).readable for tensor in (pending, placed)] == [True, True]
    assert part_of(placed) is pending.elem


def test_the_value_of_a_distributed_number_is_only_known_where_no_other_rank_holds_some(mesh: DeviceMesh) -> None:
    number = torch.tensor(2.0)
    assert value_of(local(number, mesh, Replicate(), Replicate(), shape=())) is not None
    assert value_of(local(number, mesh, Replicate(), Partial(), shape=())) is None
    assert value_of(number) is number


def test_reading_a_part_leaves_its_storage_resizable(mesh: DeviceMesh) -> None:
    """CA-33."""
    values = torch.ones(4, 3)
    read(local(values, mesh, Shard(0), Replicate(), shape=(8, 3)))
    assert values.untyped_storage().resizable()
