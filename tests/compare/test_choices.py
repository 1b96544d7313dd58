"""Another expert for a tied token is a choice, not a size: it is told, and nothing behind it is judged (CP-7, A-10)."""

from pathlib import Path

import pytest
import torch
from torch import nn

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import PERTURBED
from paritrace.compare.result import Comparison, Group, Mark
from paritrace.runs.draws import draw_path, draws_of
from paritrace.runs.reading import open_run
from tests.compare.test_exits import DRAWS, Mix


class Gate(nn.Module):
    """The scores of two experts; those of the first token are as good as tied."""

    def __init__(self, tie: float) -> None:
        super().__init__()
        self.tie = nn.Parameter(torch.tensor([0.0, tie]))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        score = x.square().sum(-1, keepdim=True)
        found = torch.topk(torch.cat([score, score], dim=-1) * (1 + self.tie), 1)
        return found.values, found.indices


class Routed(nn.Module):
    def __init__(self, *, backwards: bool, tie: float, bent: float) -> None:
        super().__init__()
        self.mix = Mix(backwards=backwards)
        self.gate = Gate(tie)
        self.experts = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))
        self.bent = bent

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mix(x) * self.bent
        values, chosen = self.gate(x)
        both = torch.stack([expert(x) for expert in self.experts], dim=-2)
        routed = both.gather(-2, chosen[..., None].expand(-1, -1, 32))[:, 0]
        out: torch.Tensor = routed * values.sigmoid()
        return out


def capture(run: Path, *, seed: int = 0, backwards: bool = False, tie: float = 1e-6, bent: float = 1.0) -> Path:
    torch.manual_seed(0)
    model = Routed(backwards=backwards, tie=tie, bent=bent)
    with paritrace.trace(run, steps=(0, 1), diff=False, perturb_seed=seed):
        torch.autograd.backward(model(torch.randn(24, 32)).square().mean())
        paritrace.step(1)
    return run


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = capture(tmp_path_factory.mktemp("choices") / "a")
    for seed in range(1, DRAWS + 1):
        capture(draw_path(run, seed), seed=seed)
    return run


def judged(baseline: Path, candidate: Path) -> Comparison:
    a = open_run(baseline)
    return compare(a, open_run(candidate), by=JudgedBy(PERTURBED, tuple(map(open_run, draws_of(a.folder))))).result


def test_cp7_another_choice_is_told_and_no_module_behind_it_is_blamed(baseline: Path, tmp_path: Path) -> None:
    result = judged(baseline, capture(tmp_path / "b", backwards=True, tie=-1e-6))
    assert not [f for f in result.findings if f.place.group is Group.EXCEEDS]
    found = next(f for f in result.findings if f.place.group is Group.CHOOSES)
    assert (found.place.module, found.place.step) == ("gate", 0)
    assert "Gate in gate" in found.sentence
    assert "makes another discrete choice at step 0, forward (rank 0)" in found.sentence
    assert "24 of 24 sampled elements differ; the values beside them differ by at most" in found.strength
    assert found.consequences > 0
    assert result.ladder["forward"] is Mark.UNDETERMINED


def test_cp7_a_fault_before_a_choice_is_named_all_the_same(baseline: Path, tmp_path: Path) -> None:
    result = judged(baseline, capture(tmp_path / "b", tie=-1e-6, bent=1.01))
    assert not [f for f in result.findings if f.place.group is Group.EXCEEDS and f.place.module.startswith("experts")]
    assert result.findings[0].place.module in ("", "gate")


def test_cp7_without_another_choice_everything_is_judged(baseline: Path, tmp_path: Path) -> None:
    result = judged(baseline, capture(tmp_path / "b", backwards=True))
    assert not [f for f in result.findings if f.place.group in (Group.CHOOSES, Group.EXCEEDS)]
    assert result.ladder["forward"] is Mark.INSIDE
