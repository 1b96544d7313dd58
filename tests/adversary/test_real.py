"""Real captures of one training that differ in one known thing: what is said is what an expert would say."""

from pathlib import Path

import pytest

from paritrace.compare.engine import compare
from paritrace.compare.result import Comparison, Group, Mark
from paritrace.runs.reading import open_run
from tests.cases.captures import run_captured, write_script

TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(2):
    optimizer.zero_grad()
    loss = model(torch.randn(6, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
MODULE, BOTH = ("module",), ("module", "op")
CLIPPED = "loss.backward()\n    nn.utils.clip_grad_norm_(model.parameters(), 0.01)"


def captured(place: Path, change: tuple[str, str] = ("", ""), *, levels: tuple[str, ...] = BOTH) -> Path:
    script = write_script(place / "code" / "train.py", TRAINING.replace(*change) if change[0] else TRAINING)
    done = run_captured(script, place / "run", levels=levels)
    assert done.status == 0, done.stderr
    return place / "run"


def compared(baseline: Path, candidate: Path) -> Comparison:
    return compare(open_run(baseline), open_run(candidate)).result


@pytest.mark.slow
def test_runs_of_other_levels_pair_in_what_both_recorded(tmp_path: Path) -> None:
    result = compared(captured(tmp_path / "a", levels=MODULE), captured(tmp_path / "b", levels=BOTH))
    assert (result.counts.undetermined_baseline, result.counts.different) == (0, 0)
    assert result.counts.paired == result.counts.calls_baseline > 0
    assert set(result.undetermined_by_reason["candidate"]) == {"not_recorded"}


@pytest.mark.slow
def test_another_optimizer_and_clipping_and_draws_are_placed_where_they_are(tmp_path: Path) -> None:
    baseline = captured(tmp_path / "a")
    sgd = compared(baseline, captured(tmp_path / "sgd", ("torch.optim.AdamW", "torch.optim.SGD"))).first_difference
    assert sgd is not None
    assert (sgd.group, sgd.region, sgd.step, sgd.phase, sgd.line) == (Group.ORIGINATES, True, 0, "optimizer", 12)
    clipped = compared(baseline, captured(tmp_path / "clip", ("loss.backward()", CLIPPED)))
    first = clipped.first_difference
    assert first is not None
    assert (first.group, first.step, clipped.ladder["backward"]) == (Group.AFTER_UNALIGNED, 0, Mark.AGREES)
    assert first.cause.endswith("may have been written at train.py:12")
    drawn = compared(baseline, captured(tmp_path / "rng", ("for step", "torch.rand(3)\nfor step"))).first_difference
    assert drawn is not None
    assert (drawn.group, drawn.region_calls) == (Group.ORIGINATES, (8, 9))  # the set-up, with the draw at its end
    assert drawn.candidate_site == "train.py:6-8"
