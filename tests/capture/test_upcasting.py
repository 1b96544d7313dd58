"""Running wider without a change to the program: what is lifted, what keeps its identity, what is counted (CP-10b)."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional

from paritrace.capture.pytorch.upcasting import Upcasting
from paritrace.errors import RequestError


@pytest.fixture
def mode() -> Iterator[Upcasting]:
    with Upcasting("float64") as entered:
        yield entered


def test_parameters_keep_their_identity_and_gradients_and_optimizer_state_are_wide(mode: Upcasting) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    before = list(model.parameters())
    optimizer: Any = torch.optim.AdamW(before, lr=0.1)
    mode.lift_module(model)
    model(torch.ones(4, 3)).square().mean().backward()
    optimizer.step()
    assert all(one is other for one, other in zip(model.parameters(), before, strict=True))
    kinds = {one.dtype for one in model.parameters()} | {one.grad.dtype for one in before if one.grad is not None}
    kinds |= {value.dtype for state in optimizer.state.values() for name, value in state.items() if name != "step"}
    assert kinds == {torch.float64}
    assert mode.facts() == {"upcast": "float64"}


def test_what_is_drawn_is_what_the_narrow_run_draws(mode: Upcasting) -> None:
    first, second = torch.Generator().manual_seed(0), torch.Generator().manual_seed(0)
    layer, other = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    torch.nn.init.normal_(layer.weight, generator=first)
    mode.lift_module(layer)
    torch.nn.init.normal_(other.weight, generator=second)
    assert layer.weight.dtype is torch.float64
    assert torch.equal(layer.weight, other.weight.double())
    drawn, again = torch.randn(4, generator=first), torch.randn(4, generator=second)
    assert drawn.dtype is torch.float32
    assert torch.equal(drawn, again)


def test_casts_that_a_program_names_do_not_narrow(mode: Upcasting) -> None:
    model = torch.nn.Linear(2, 2)
    mode.lift_module(model)
    value = model(torch.ones(1, 2))
    assert value.to(torch.float32).dtype is torch.float64
    assert value.half().dtype is torch.float64
    assert value.softmax(dim=-1, dtype=torch.float32).dtype is torch.float64
    assert value.sum(dtype=torch.float32).dtype is torch.float64
    assert torch.zeros_like(value, dtype=torch.bfloat16).dtype is torch.float64
    assert value.to(torch.int64).dtype is torch.int64
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert functional.linear(value, model.weight).dtype is torch.float64


def test_what_is_written_in_place_keeps_its_dtype_and_is_counted(mode: Upcasting) -> None:
    model = torch.nn.Linear(2, 2)
    mode.lift_module(model)
    kept, table = torch.zeros(1, 2), torch.zeros(3, 2)
    value = model(torch.ones(1, 2)).detach()
    kept += value
    table[torch.tensor([1])] = value
    assert kept.dtype is table.dtype is torch.float32
    assert (kept - value).abs().max().item() < 1e-6  # rounded once, when it was written
    told = mode.facts()["not_lifted"]
    assert told.startswith("2 results: ")
    assert "aten::add_ 1" in told


def test_float32_lifts_what_is_narrower_and_leaves_what_is_wider() -> None:
    with Upcasting("float32") as mode:
        model = torch.nn.Linear(2, 2, dtype=torch.bfloat16)
        mode.lift_module(model)
        assert model.weight.dtype is torch.float32
        assert model(torch.ones(1, 2, dtype=torch.bfloat16)).dtype is torch.float32
        assert torch.ones(2, dtype=torch.float64).to(torch.bfloat16).dtype is torch.bfloat16


def test_without_a_lifted_module_nothing_changes(mode: Upcasting) -> None:
    assert torch.nn.Linear(2, 2)(torch.ones(1, 2)).dtype is torch.float32
    assert mode.facts() == {"upcast": "float64"}


def test_parameters_that_were_cut_into_shards_are_refused_by_name(mode: Upcasting) -> None:
    from torch.distributed.fsdp import FSDPModule

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    sharded = type("FSDPLinear", (FSDPModule, torch.nn.Linear), {})  # as `fully_shard` does it, on any number of ranks
    model[1].__class__ = sharded
    with pytest.raises(RequestError, match="float64 cannot lift parameters that fully_shard has cut") as refused:
        mode.lift_module(model)
    assert refused.value.code == "not_lifted"
    assert mode.facts()["not_lifted"] == "refused: fully_shard"
    assert model[0].weight.dtype is torch.float32, "nothing is lifted by half"


def test_tensors_that_only_tell_shapes_pass_through(mode: Upcasting) -> None:
    """A DTensor is laid out by asking what an operator would give for fake tensors."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode.lift_module(torch.nn.Linear(3, 3))
    with FakeTensorMode() as fake:
        told = fake.from_tensor(torch.ones(2, 3)).detach() + 1
    assert (told.shape, told.dtype) == ((2, 3), torch.float32)
