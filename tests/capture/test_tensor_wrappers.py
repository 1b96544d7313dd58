"""Operators on DTensor: the local ones are seen, linked and placed; metadata is no call (CA-10, CA-31, CA-34)."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import paritrace
from paritrace.evidence.calls import Call, Flag, Kind, Scope
from tests.cases.ranked import Rank, recorded_ranks

in_memory = vars(dist)["HashStore"]  # a store of one process, which torch exports without saying so


@pytest.fixture(autouse=True)
def world() -> Iterator[None]:
    """A world of one rank, in this process."""
    dist.init_process_group("gloo", store=in_memory(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def split(model: nn.Module) -> nn.Module:
    mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("tp",))
    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def block() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))


def train(model: nn.Module, *, steps: int = 2, again: bool = False) -> list[str]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        batch = torch.ones(4, 8, requires_grad=again)
        loss = (checkpoint(model, batch, use_reentrant=False) if again else model(batch)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float.hex(loss.item()))
    return losses


def captured(place: Path, model: nn.Module, **options: Any) -> tuple[Rank, list[str]]:
    with paritrace.trace(place, level=("op",), steps=(0, 1000), diff=False):
        losses = train(model, **options)
    return recorded_ranks(place)[0], losses


def test_ca10_the_local_operators_are_those_of_the_whole_model(tmp_path: Path) -> None:
    """With one rank a split model does what the whole one does: the same matrix products, linked to the same calls."""
    whole, losses = captured(tmp_path / "whole", block())
    parted, split_losses = captured(tmp_path / "split", split(block()))
    assert split_losses == losses
    for name in ("aten.addmm.default", "aten.mm.default", "aten.gelu.default", "aten.gelu_backward.default"):
        assert facts(parted, name) == facts(whole, name)


def facts(rank: Rank, function: str) -> list[tuple[object, ...]]:
    """Bits of inputs and outputs, node, module, and function of the linked call."""
    modules = {item.id: item.module for item in rank.records if isinstance(item, Scope)}
    return [
        (
            [slot.bits for slot in call.inputs],
            [slot.bits for slot in call.outputs],
            rank.names.get(call.node, ""),
            modules.get(call.scope, ""),
            rank.function(rank.calls[call.link]) if call.link >= 0 else "",
            call.flags & ~Flag.NO_GRAD,
        )
        for call in rank.calls.values()
        if rank.function(call) == function
    ]


def test_ca10_every_matrix_product_of_a_backward_is_linked(tmp_path: Path) -> None:
    rank, _ = captured(tmp_path / "run", split(block()))
    products = [call for call in rank.calls.values() if rank.function(call) == "aten.mm.default"]
    assert products
    assert all(call.link >= 0 and not call.flags & Flag.LINK_AMBIGUOUS for call in products)


def test_ca10_recomputed_local_operators_are_linked_to_their_originals(tmp_path: Path) -> None:
    rank, losses = captured(tmp_path / "run", split(block()), again=True)
    assert losses == train(split(block()), again=True)
    repeated = [
        call
        for call in rank.calls.values()
        if rank.function(call) == "aten.addmm.default" and call.flags & Flag.RECOMPUTE
    ]
    assert len(repeated) == 2, "each step repeats what its backward needs: the first product"
    for call in repeated:
        original = rank.calls[call.link]
        assert [slot.bits for slot in original.outputs] == [slot.bits for slot in call.outputs]


def test_ca31_no_call_is_of_metadata_or_of_a_wrapper(tmp_path: Path) -> None:
    rank, _ = captured(tmp_path / "run", split(block()))
    classes = {item.id: item.tensor_class for item in rank.records if isinstance(item, Kind)}
    used = {classes[slot.kind] for call in rank.calls.values() for slot in slots(call)}
    assert used <= {"Tensor", "Parameter", "AsyncCollectiveTensor"}
    assert not [call for call in rank.calls.values() if rank.function(call) == "aten.empty_strided.default"]


def slots(call: Call) -> tuple[Any, ...]:
    return (*call.inputs, *call.outputs)


def test_a_workloads_own_fake_tensors_are_recorded_as_before(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "run", level=("op",), steps=(0, 1000), diff=False):
        train(split(block()), steps=1)
        with FakeTensorMode():
            torch.ones(4).neg()
    rank = recorded_ranks(tmp_path / "run")[0]
    assert [call for call in rank.calls.values() if rank.function(call) == "aten.neg.default"][-1:]


class Counting(TorchDispatchMode):
    """Counts what the workload dispatches."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.seen[str(func)] += 1
        return func(*args, **(kwargs or {}))


def test_ca34_the_workload_dispatches_the_same_calls(tmp_path: Path) -> None:
    """Also below the wrapper: a counting mode that unwraps as ours does sees the same in both runs."""

    def counted() -> Counter[str]:
        counting = Counting()
        with counting:
            train(split(block()))
        return counting.seen

    counted()  # the first run fills DTensor's caches
    bare = counted()
    with paritrace.trace(tmp_path / "run", level=("op",), steps=(0, 1000), diff=False):
        watched = counted()
    assert watched == bare
