"""A-08: only dQ changes from run to run, as with atomic additions; no difference there is the work of the change."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import REPEATS
from paritrace.compare.repeats_joined import with_repeats
from paritrace.compare.result import Comparison
from paritrace.compare.settings import Settings
from paritrace.reports.explained import behind
from paritrace.reports.first_screen import first_screen
from paritrace.runs.reading import open_run


class Attention(torch.autograd.Function):
    """Scores of queries and keys, whose backward adds up the parts of dQ in the order in which they happen to come."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, order: list[int]) -> torch.Tensor:
        ctx.save_for_backward(q, k)
        ctx.order = order
        return q @ k.T

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        q, k = ctx.saved_tensors
        total = torch.zeros_like(q)
        for place in ctx.order:
            total = total + torch.outer(grads[0][:, place], k[place])
        return total, grads[0].T @ q, None


class Model(nn.Module):
    def __init__(self, order: list[int], factor: float) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(16, 16), nn.Linear(16, 16)
        self.order, self.factor = order, factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = Attention.apply(self.q(x), self.k(x), self.order)  # type: ignore[no-untyped-call]
        return found.square().mean() * self.factor


def capture(run: Path, shift: int, *, factor: float = 1.0) -> Path:
    torch.manual_seed(0)
    model = Model([*range(shift, 12), *range(shift)], factor)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with paritrace.trace(run, level=("module", "op"), diff=False):
        torch.autograd.backward(model(torch.randn(12, 16)))
        optimizer.step()
        optimizer.zero_grad()
    return run


def compared(baseline: Path, candidate: Path, *repeats: Path) -> Comparison:
    with open_run(baseline) as ours, open_run(candidate) as theirs:
        again = tuple(open_run(path) for path in repeats)
        found = compare(ours, theirs, by=JudgedBy(REPEATS, again) if again else None).result
        return with_repeats(found, ours, again, settings=Settings())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("a08")
    return [capture(place / f"run{shift}", shift) for shift in (0, 3, 5, 7)]


def test_the_call_at_which_the_baseline_differs_from_itself_is_named(runs: list[Path]) -> None:
    found = compared(runs[0], runs[3], *runs[1:3])
    own = found.repeats
    assert own is not None
    assert (own.num_repeats, own.num_differing, own.num_unknown) == (2, 2, 0)
    (one,) = own.places
    assert (one.num_repeats, one.place.function, one.place.phase) == (2, "aten.add.Tensor", "backward")
    assert one.place.file.endswith("test_a08.py")
    words = " ".join(first_screen(found).split())
    assert "[repeats] the baseline does not repeat itself: first at" in words
    assert "aten.add.Tensor" in words
    assert ", 2 of 2 repeats" in words
    assert "F1 stands at that call: bits do not put it down to the change" in words
    assert any("baseline:" in fact for fact in behind(found, "repeats").facts)


def test_what_stands_before_it_is_put_down_to_the_change(runs: list[Path], tmp_path: Path) -> None:
    found = compared(runs[0], capture(tmp_path / "b", 7, factor=1.01), runs[1])
    assert found.first_difference is not None
    assert found.first_difference.phase == "forward"
    words = " ".join(first_screen(found).split())
    assert "the baseline does not repeat itself: first at" in words
    assert "bits do not put it down" not in words


def test_repeats_that_agree_are_counted_and_nothing_is_said_on_the_screen(runs: list[Path], tmp_path: Path) -> None:
    found = compared(runs[0], runs[3], capture(tmp_path / "again", 0))
    assert found.repeats is not None
    assert (found.repeats.num_repeats, found.repeats.num_differing, found.repeats.places) == (1, 0, ())
    assert "[repeats]" not in first_screen(found)
    assert "repeats itself bit for bit in 1 repeat" in behind(found, "repeats").statement


def test_without_repeats_nothing_is_known(runs: list[Path]) -> None:
    found = compared(runs[0], runs[3])
    assert "--noise" in behind(found, "repeats").statement
