"""Level `callsite` judged by perturbed draws: round-off stays inside, a fault leaves at its call (CA-10, CP-10a)."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import paritrace
from paritrace.capture.rewriting import probes
from paritrace.compare.engine import compare
from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import PERTURBED
from paritrace.compare.result import Comparison
from paritrace.compare.settings import Settings
from paritrace.runs.reading import open_run

pytestmark = pytest.mark.slow

DRAWS = 8
BEYOND = "beyond round-off"
MODEL = """
import torch
from torch import nn


class Norm(nn.Module):
    def forward(self, x, eps, fused):
        v = x.pow(2).mean(-1, keepdim=True)
        if fused:  # another order of the same sum
            v = x.flip(-1).pow(2).mean(-1, keepdim=True)
        r = v.add(eps).rsqrt()
        return x.mul(r)


def train(eps, fused=False):
    torch.manual_seed(0)
    first, norm, last = nn.Linear(16, 33), Norm(), nn.Linear(33, 4)
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=1e-2)
    for _ in range(2):
        loss = last(norm(first(torch.randn(8, 16)), eps, fused)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout with the model in it; what is imported from it is forgotten."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "notebook.py").write_text("")
    (folder / "cd_model.py").write_text(MODEL)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(folder / "notebook.py"), raising=False)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("cd_model", None)
    probes.be_silent()


def captured(run: Path, *, seed: int = 0, eps: float = 1e-6, fused: bool = False) -> Path:
    with paritrace.trace(run, level="callsite", diff=False, perturb_seed=seed):
        importlib.import_module("cd_model").train(eps, fused)
    return run


def judged(folder: Path, candidate: Path) -> Comparison:
    baseline = captured(folder / "baseline")
    draws = tuple(open_run(captured(folder / f"{seed:02}", seed=seed)) for seed in range(1, DRAWS + 1))
    return compare(open_run(baseline), open_run(candidate), Settings(), by=JudgedBy(PERTURBED, draws)).result


def test_cp10a_a_wrong_epsilon_leaves_the_envelope_at_the_call_that_was_given_it(folder: Path) -> None:
    result = judged(folder, captured(folder / "candidate", eps=1e-2))
    assert result.envelope is not None
    assert result.envelope.num_draws == DRAWS
    first = result.findings[0]
    assert first.strength.startswith(BEYOND)
    assert (first.place.function, first.place.line) == ("torch.Tensor.add", 11)


def test_cp10a_another_order_of_a_sum_stays_inside(folder: Path) -> None:
    result = judged(folder, captured(folder / "candidate", fused=True))
    assert [one for one in result.findings if one.strength.startswith(BEYOND)] == []
    assert result.counts.different
