"""What the workload can see of a capture: nothing. Dispatched calls, resizable storages, lifetimes (CA-33, CA-34)."""

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import paritrace
from benchmarks.same_bits.counting import counted
from benchmarks.same_bits.workloads import WORKLOADS
from paritrace.evidence.calls import Call, Detail
from paritrace.runs.reading import open_run

LEVELS = [("digest",), ("module",), ("op",), ("module", "op")]
# A mode in Python decides which code runs in these, whether a capture is there or not.
COMPILED = {"compiled model", "compiled function"}
EAGER = sorted(set(WORKLOADS) - COMPILED)
# Batches arrive from other processes when they please: bare, too, the order differs from one run to the next.
UNORDERED = frozenset({"data loader workers"})


@pytest.mark.slow
@pytest.mark.parametrize("name", EAGER)
def test_the_calls_of_a_training_are_the_same_in_number_and_order(name: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    training = WORKLOADS[name]
    bare = counted(training())
    assert bare.names
    for levels in LEVELS:
        with paritrace.trace(tmp_path / "-".join(levels), level=levels, steps=(0, 1000), diff=False):
            captured = counted(training())
        if name in UNORDERED:
            assert Counter(captured.names) == Counter(bare.names), levels
        else:
            assert captured.names == bare.names, levels
        assert captured.resizable == bare.resizable, levels


@pytest.mark.slow
@pytest.mark.parametrize("name", EAGER)
def test_what_was_captured_was_looked_at(name: str, tmp_path: Path) -> None:
    """The test above would pass for a capture that sees nothing."""
    with paritrace.trace(tmp_path / "run", level=("module", "op"), steps=(0, 1000), diff=False):
        for _ in WORKLOADS[name]():
            pass
    with open_run(tmp_path / "run") as run:
        records = list(run.records("rank-0"))
    assert any(isinstance(record, Call) for record in records)
    # Under functorch's transforms a module's tensors are wrappers without bytes.
    assert any(isinstance(record, Detail) for record in records) is (name != "functorch vmap and grad")


@pytest.mark.parametrize("levels", LEVELS, ids="-".join)
def test_no_tensor_outlives_its_hook(levels: tuple[str, ...], tmp_path: Path) -> None:
    alive: list[weakref.ref[torch.Tensor]] = []
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))

    def noted(tensor: torch.Tensor) -> torch.Tensor:
        alive.append(weakref.ref(tensor))
        return tensor

    with paritrace.trace(tmp_path / "run", level=levels, diff=False):
        batch = noted(torch.ones(2, 3))
        hidden = noted(model(batch))
        loss = noted(hidden.square().mean())
        torch.autograd.backward(loss)
        for parameter in model.parameters():
            assert parameter.grad is not None
            noted(parameter.grad)
        model.zero_grad(set_to_none=True)
        del batch, hidden, loss
        gc.collect()
        assert [reference() for reference in alive] == [None] * len(alive), "while the capture runs"


@pytest.mark.parametrize("levels", LEVELS, ids="-".join)
def test_a_gradient_is_handed_over_and_not_copied(levels: tuple[str, ...], tmp_path: Path) -> None:
    """Autograd moves a gradient that nobody else holds into `.grad`, and copies one that somebody does."""
    addresses: list[int] = []

    class Spy(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any,  # noqa: ARG004
            value: torch.Tensor,
        ) -> torch.Tensor:
            return value.clone()

        @staticmethod
        def backward(
            ctx: Any,  # noqa: ARG004
            *gradients: torch.Tensor,
        ) -> torch.Tensor:
            made = gradients[0] * 2
            addresses.append(made.data_ptr())
            return made

    weight = torch.nn.Parameter(torch.ones(8))
    apply: Callable[[torch.Tensor], torch.Tensor] = Spy.apply
    with paritrace.trace(tmp_path / "run", level=levels, diff=False):
        torch.autograd.backward(apply(weight).sum())
    assert weight.grad is not None
    assert addresses == [weight.grad.data_ptr()]


@pytest.mark.parametrize("levels", LEVELS, ids="-".join)
def test_torch_is_as_it_was_afterwards(levels: tuple[str, ...], tmp_path: Path) -> None:
    import warnings

    from torch.nn.modules import module as hooks
    from torch.optim import optimizer as optimizers

    def state() -> tuple[object, ...]:
        return (
            torch.autograd.backward,
            torch.autograd.grad,
            len(hooks._global_forward_pre_hooks),
            len(hooks._global_forward_hooks),
            len(optimizers._global_optimizer_pre_hooks),
            len(optimizers._global_optimizer_post_hooks),
            len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()),
            torch.is_grad_enabled(),
            torch.get_rng_state().tolist(),
            list(warnings.filters),
        )

    def captured(run: str) -> None:
        with paritrace.trace(tmp_path / run, level=levels, diff=False):
            model = torch.nn.Linear(2, 2, device="meta")
            model(torch.ones(1, 2, device="meta"))

    captured("first")  # imports parts of torch that have warning filters of their own
    before = state()
    captured("second")
    assert state() == before
