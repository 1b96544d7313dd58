"""A replayed call: forced inputs and parameters, the program undisturbed, float64 throughout (CP-26)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from torch import nn

from paritrace.capture.pytorch.lifting import Lifted
from paritrace.capture.pytorch.replay_answer import answer
from paritrace.compare.judged_result import Functions, JudgedCall, Nearer
from paritrace.compare.judging import judged_call
from paritrace.evidence.dumps import TensorLeaf, leaves, tree_of
from paritrace.evidence.replays import Replayed
from paritrace.evidence.tensor_bundles import Piece
from tests.capture.golden_calls import answered, golden_of, kept, request_of, task_of


class Norm(nn.Module):
    """Computes in float32 whatever it is given, as norms do."""

    def __init__(self, eps: float = 1e-6, power: float = -0.5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 16))
        self.eps = eps
        self.power = power

    def forward(self, x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        wide = x.to(torch.float32)
        variance = wide.pow(2).mean(-1, keepdim=True)
        scaled: torch.Tensor = self.weight * (wide * (variance + self.eps) ** self.power).to(x.dtype) * scale
        return scaled


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        dropped: torch.Tensor = self.drop(self.norm(x))
        return dropped


def small(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.randn(4, 16, generator=torch.Generator().manual_seed(3)) * 3e-3).to(dtype)


def replayed(
    module: nn.Module, other: nn.Module, folder: Path, *args: Any, live: tuple[Any, ...] = (), **changes: Any
) -> tuple[Replayed, dict[str, Piece]]:
    """The answer of `other` on a call that `module` is given."""
    task = task_of(golden_of(module, folder, *args), folder, **changes)
    return answer(other, task, request_of(task, output=folder), args=live, kwargs={})


def judged(module: nn.Module, other: nn.Module, folder: Path, *args: Any) -> JudgedCall:
    ours = answered(*replayed(module, module, folder, *args), folder / "a.safetensors")
    theirs = answered(*replayed(module, other, folder, *args), folder / "b.safetensors")
    return judged_call(ours, theirs, rank=0, step=0, number=0)


def test_cp26_the_recorded_inputs_and_weights_are_forced_and_nothing_of_the_module_changes(tmp_path: Path) -> None:
    recorded, own = Norm(), Norm()
    with torch.no_grad():
        own.weight.zero_()
    found, pieces = replayed(recorded, own, tmp_path, small())
    assert not found.refused
    values = answered(found, pieces, tmp_path / "x").arrays["recorded/out"]
    assert np.array_equal(values, recorded(small()).detach().double().numpy())
    assert torch.equal(own.weight, torch.zeros(16))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cp26_a_norm_that_computes_in_float32_on_purpose_has_a_reference_in_float64(
    tmp_path: Path, dtype: torch.dtype
) -> None:
    module = Norm().to(dtype)
    found, pieces = replayed(module, module, tmp_path, small(dtype))
    wide = answered(found, pieces, tmp_path / "x").arrays["float64/out"]
    x = small(dtype).double()
    right = module.weight.double() * x * (x.pow(2).mean(-1, keepdim=True) + 1e-6) ** -0.5
    assert np.abs(wide / right.detach().numpy() - 1).max() < 1e-14


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cp26_a_wrong_epsilon_does_not_vanish_in_float64(tmp_path: Path, dtype: torch.dtype) -> None:
    call = judged(Norm(1e-6).to(dtype), Norm(1e-5).to(dtype), tmp_path, small(dtype).requires_grad_())
    assert call.functions is Functions.DIFFERENT
    assert call.nearer is Nearer.NO_REFERENCE
    out = next(tensor for tensor in call.tensors if tensor.path == "out")
    assert out.apart_float64 is not None
    assert out.apart_float64 > 0.1
    assert {tensor.path for tensor in call.tensors if tensor.gradient} == {"args[0]", "weight"}


def test_cp26_recorded_gradients_of_outputs_go_in_though_an_argument_has_their_number(tmp_path: Path) -> None:
    module, x = Norm(), small().requires_grad_()
    golden = golden_of(module, tmp_path, x)
    given = torch.full((4, 16), 0.25)
    (argument,) = [leaf for leaf in leaves(tree_of(golden.inputs)) if isinstance(leaf, TensorLeaf)]
    gradient = replace(kept(given, tmp_path), number=argument.tensor.number)
    task = task_of(golden, tmp_path, gradients={"out": gradient})
    found, pieces = answer(module, task, request_of(task, output=tmp_path), args=(), kwargs={})
    values = answered(found, pieces, tmp_path / "x").arrays
    right = torch.autograd.grad(module(x), x, given)[0].double().numpy()
    assert np.array_equal(values["recorded_gradient/args[0]"], right)
    assert found.drawn == ()
    without = replace(task, gradients={})
    assert answer(module, without, request_of(task, output=tmp_path), args=(), kwargs={})[0].drawn == ("out",)


class WithWeights(nn.Module):
    """An attention that hands out its weights too, or keeps them: nothing goes back through them."""

    def __init__(self, *, hands_out: bool) -> None:
        super().__init__()
        self.hands_out = hands_out

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        weights = torch.softmax(x @ x.T, -1)
        return weights @ x, weights if self.hands_out else None


def test_cp26_an_output_that_no_gradient_reached_takes_no_part_in_the_backward(tmp_path: Path) -> None:
    x = torch.randn(4, 16).requires_grad_()
    module, other = WithWeights(hands_out=True), WithWeights(hands_out=False)
    task = task_of(golden_of(module, tmp_path, x), tmp_path, gradients={"out[0]": kept(torch.ones(4, 16), tmp_path)})
    request = request_of(task, output=tmp_path)
    replays = [answer(one, task, request, args=(), kwargs={}) for one in (module, other)]
    ours, theirs = (answered(*found, tmp_path / f"{place}") for place, found in enumerate(replays))
    assert np.array_equal(ours.arrays["recorded_gradient/args[0]"], theirs.arrays["recorded_gradient/args[0]"])


def replays_of(
    folder: Path, modules: tuple[nn.Module, nn.Module], x: torch.Tensor, gradients: dict[str, torch.Tensor]
) -> JudgedCall:
    """Both modules on what the first was given, with these gradients recorded at its outputs."""
    held = {path: kept(gradient, folder) for path, gradient in gradients.items()}
    task = task_of(golden_of(modules[0], folder, x), folder, gradients=held)
    request = request_of(task, output=folder)
    replays = [answer(one, task, request, args=(), kwargs={}) for one in modules]
    ours, theirs = (answered(*found, folder / f"{place}") for place, found in enumerate(replays))
    return judged_call(ours, theirs, rank=0, step=0, number=0)


@pytest.mark.parametrize("recorded", [True, False])
def test_cp26_what_reaches_an_output_through_another_one_is_put_in_once(tmp_path: Path, recorded: bool) -> None:
    """Attention weights that are handed out have a gradient of their own: the part that comes from what they make."""
    x = torch.randn(4, 16).requires_grad_()
    gradients = {"out[0]": torch.randn(4, 16), "out[1]": torch.empty(0)}
    gradients["out[1]"] = (gradients["out[0]"] @ x.T).detach()
    modules = (WithWeights(hands_out=True), WithWeights(hands_out=False))
    call = replays_of(tmp_path, modules, x, gradients if recorded else {})
    found = {tensor.path: tensor.functions for tensor in call.tensors}
    assert found == {"out[0]": Functions.EQUAL, "args[0]": Functions.EQUAL}
    assert [remark for remark in call.remarks if "random" not in remark] == ["only the baseline has out[1]"]


def test_cp26_a_gradient_from_elsewhere_takes_the_place_of_what_comes_through(tmp_path: Path) -> None:
    x = torch.randn(4, 16).requires_grad_()
    module = WithWeights(hands_out=True)
    gradients = {"out[0]": torch.randn(4, 16), "out[1]": torch.randn(4, 4)}
    held = {path: kept(gradient, tmp_path) for path, gradient in gradients.items()}
    task = task_of(golden_of(module, tmp_path, x), tmp_path, gradients=held)
    found, pieces = answer(module, task, request_of(task, output=tmp_path), args=(), kwargs={})
    made, weights = module(x)
    through = (gradients["out[0]"] @ x.T).detach()
    outside = [gradients["out[0]"], gradients["out[1]"] - through]
    right = torch.autograd.grad([made, weights], x, outside)[0].double().numpy()
    values = answered(found, pieces, tmp_path / "x").arrays
    assert np.allclose(values["recorded_gradient/args[0]"], right, rtol=1e-4, atol=1e-5)
    assert found.begun == ("out[0]", "out[1]")
    (tmp_path / "b").mkdir()
    other = replays_of(tmp_path / "b", (module, WithWeights(hands_out=False)), x, gradients)
    (gradient,) = [tensor for tensor in other.tensors if tensor.gradient]
    assert gradient.functions is Functions.UNDETERMINED
    assert gradient.why == "the backward begins at out[0], out[1] of the baseline and at out[0] of the candidate"


class Ordered(nn.Module):
    """A sum of many terms, front to back or by torch: one function, rounded otherwise."""

    def __init__(self, *, by_torch: bool) -> None:
        super().__init__()
        self.by_torch = by_torch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.by_torch:
            return x.sum(-1)
        total = torch.zeros_like(x[..., 0])
        for part in x.unbind(-1):
            total = total + part
        return total


def test_cp26_another_order_of_a_sum_is_the_same_function_and_the_nearer_one_is_named(tmp_path: Path) -> None:
    x = torch.rand(8, 20_000, generator=torch.Generator().manual_seed(1))
    call = judged(Ordered(by_torch=False), Ordered(by_torch=True), tmp_path, x)
    assert call.functions is Functions.SAME
    assert call.nearer is Nearer.CANDIDATE
    (out,) = call.tensors
    assert out.baseline is not None
    assert out.candidate is not None
    assert (out.baseline.largest or 0) > 2 * (out.candidate.largest or 0)
    assert sum(out.baseline.histogram) == 8


def test_cp26_equal_calls_are_equal_also_where_they_draw_and_count(tmp_path: Path) -> None:
    module = Noisy().train()
    state = torch.get_rng_state()
    x = torch.randn(32, 16)
    call = judged(module, module, tmp_path, x)
    assert call.functions is Functions.EQUAL
    out = call.tensors[0]
    assert out.apart_float64 == 0
    assert out.baseline is not None
    assert (out.baseline.relative or 1) < 1e-6  # the mask is the same in float64
    assert module.norm.num_batches_tracked == 0
    torch.set_rng_state(state)
    assert torch.equal(x, torch.randn(32, 16))


def test_cp26_replaying_draws_nothing_from_the_programs_generators(tmp_path: Path) -> None:
    module = Noisy().train()
    golden = golden_of(module, tmp_path, torch.randn(4, 16))
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    task = task_of(golden, tmp_path)
    answer(module, task, request_of(task, output=tmp_path), args=(), kwargs={})
    assert torch.equal(torch.randn(3), expected)


def test_cp26_unlike_parameters_are_listed_and_can_be_declared(tmp_path: Path) -> None:
    class Renamed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    found, pieces = replayed(Norm(), Renamed(), tmp_path, small())
    assert "weight: not in this module" in found.refused
    assert "scale: not recorded" in found.refused
    assert not pieces
    found, _ = replayed(Norm(), Renamed(), tmp_path, small(), names={"weight": "scale"})
    assert not found.refused


def test_cp26_own_weights_stay(tmp_path: Path) -> None:
    own = Norm()
    with torch.no_grad():
        own.weight.mul_(2)
    ours = answered(*replayed(Norm(), Norm(), tmp_path, small()), tmp_path / "a")
    theirs = answered(*replayed(Norm(), own, tmp_path, small(), own_weights=True), tmp_path / "b")
    assert judged_call(ours, theirs, rank=0, step=0, number=0).functions is Functions.DIFFERENT
    assert np.allclose(theirs.arrays["recorded/out"], 2 * ours.arrays["recorded/out"])


def test_cp26_what_a_module_raises_is_the_answer(tmp_path: Path) -> None:
    found, pieces = replayed(Norm(), nn.Linear(3, 3), tmp_path, small())
    assert "weight: (16,) there, (3, 3) here" in found.refused
    found, pieces = replayed(nn.Identity(), nn.Bilinear(2, 2, 2, bias=False), tmp_path, small(), own_weights=True)
    assert "missing 1 required positional argument" in found.refused
    assert not pieces


def test_cp26_a_call_in_float64_has_no_wider_reference(tmp_path: Path) -> None:
    module = Norm().double()
    found, _ = replayed(module, module, tmp_path, small(torch.float64))
    assert found.no_reference == "nothing that goes into the call is narrower than float64"


class Buffered(nn.Module):
    """Writes into a float32 tensor of its own, which no float64 can go into."""

    def __init__(self) -> None:
        super().__init__()
        self.place = torch.zeros(4, 16)
        self.weight = nn.Parameter(torch.ones(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.place.copy_(x.detach() * 1.1)
        return self.place * self.weight


def test_cp26_a_reference_that_was_narrowed_on_its_way_says_so(tmp_path: Path) -> None:
    found, _ = replayed(Buffered(), Buffered(), tmp_path, small())
    assert found.narrow == ("aten.copy_.default",)


@pytest.mark.parametrize("make", [torch.rand, torch.zeros, torch.ones])
def test_cp26_what_is_made_in_a_narrow_dtype_is_made_wide(make: Callable[..., torch.Tensor]) -> None:
    with Lifted(torch.float32):
        assert make(3, dtype=torch.bfloat16).dtype is torch.float64
    assert make(3).dtype is torch.float32
