"""Perturbed draws: results move by at most a unit in the last place, everything else stays as it is (CP-10a)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import paritrace
from paritrace.capture.pytorch.kinds import Kinds
from paritrace.capture.pytorch.operators import describe
from paritrace.capture.pytorch.perturbing import Perturbing
from paritrace.capture.steps import Steps
from paritrace.runs.reading import open_run

INTEGERS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


def moved(tensor: torch.Tensor, *, seed: int = 1, func: object = torch.ops.aten.add.Tensor) -> torch.Tensor:
    perturbing = Perturbing(seed, kinds=Kinds(lambda _: None), steps=Steps())
    perturbing.results(describe(func, 0), (tensor,), tensor, in_module=True)
    return tensor


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_each_value_moves_by_at_most_one_unit_in_the_last_place(dtype: torch.dtype) -> None:
    before = torch.randn(4096, generator=torch.Generator().manual_seed(0)).to(dtype)
    after = moved(before.clone())
    distance = after.view(INTEGERS[dtype]).long() - before.view(INTEGERS[dtype]).long()
    assert set(distance.tolist()) == {-1, 0, 1}
    thirds = torch.bincount(distance + 1) / 4096
    assert ((thirds - 1 / 3).abs() < 0.05).all()


def test_zeros_the_largest_value_and_what_is_not_finite_stay() -> None:
    largest = torch.finfo(torch.float32).max
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), largest, -largest] * 50)
    assert torch.equal(moved(special.clone()).view(torch.int32), special.view(torch.int32))


def test_integers_views_random_and_uninitialised_results_stay() -> None:
    whole = torch.arange(64)
    assert torch.equal(moved(whole.clone()), whole)
    for func in (torch.ops.aten.view.default, torch.ops.aten.bernoulli_.float, torch.ops.aten.empty.memory_format):
        values = torch.randn(256)
        assert torch.equal(moved(values.clone(), func=func), values)


def test_a_strided_result_moves_only_where_it_is() -> None:
    whole = torch.randn(16, 16)
    before = whole.clone()
    moved(whole[:, ::2])
    assert torch.equal(whole[:, 1::2], before[:, 1::2])
    assert not torch.equal(whole[:, ::2], before[:, ::2])


def test_one_seed_draws_the_same_and_another_something_else() -> None:
    values = torch.randn(512)
    first, again, other = moved(values.clone()), moved(values.clone()), moved(values.clone(), seed=2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def train(run: Path | None, *, seed: int = 0, steps: int = 3) -> tuple[list[float], torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def go() -> list[float]:
        losses: list[float] = []
        for _ in range(steps):
            loss = model(torch.randn(8, 16)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    if run is None:
        losses = go()
    else:
        with paritrace.trace(run, diff=False, perturb_seed=seed):
            losses = go()
    return losses, torch.get_rng_state(), model[0].weight.detach().clone()  # type: ignore[operator]


def test_a_draw_has_the_same_random_numbers_and_losses_up_to_round_off(tmp_path: Path) -> None:
    losses, rng, weight = train(None)
    drawn, drawn_rng, drawn_weight = train(tmp_path / "draw", seed=3)
    assert torch.equal(rng, drawn_rng)
    assert drawn != losses
    np.testing.assert_allclose(drawn, losses, rtol=1e-4)
    assert not torch.equal(weight, drawn_weight)
    torch.testing.assert_close(drawn_weight, weight, rtol=0, atol=1e-3)
    (session,) = open_run(tmp_path / "draw").envelope.sessions
    assert open_run(tmp_path / "draw").envelope.metadata["perturb_seed"] == "3"
    assert session.status == "completed"


def test_seed_zero_moves_nothing(tmp_path: Path) -> None:
    assert train(None)[0] == train(tmp_path / "run")[0]


def test_the_batch_is_no_result_and_stays(tmp_path: Path) -> None:
    seen: list[torch.Tensor] = []

    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x)
            return self.inner(x)  # type: ignore[no-any-return]

    def go(seed: int) -> None:
        torch.manual_seed(1)
        model = Keeps()
        with paritrace.trace(tmp_path / f"run{seed}", diff=False, perturb_seed=seed):
            for _ in range(2):
                model((torch.randn(3, 4) * 2.5 + 1) / 3).sum().backward()

    go(0)
    go(5)
    assert all(torch.equal(a, b) for a, b in zip(seen[:2], seen[2:], strict=True))
