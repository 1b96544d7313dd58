"""A fault in a backward: named by its line at level op; at level module what follows it is no finding (CP-8)."""

from pathlib import Path

import pytest

from paritrace.compare.result import DifferenceClass, Group
from tests.cases.captures import compare, run_captured, write_script

SCRIPT = """
import sys

import torch
from torch import nn


class Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * float(sys.argv[1])  # FAULT


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.last(Through.apply(self.second(self.first(x).relu())))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def both(place: Path, level: str) -> tuple[Path, Path]:
    script = write_script(place / "train.py", SCRIPT)
    runs = place / "a", place / "b"
    for run, factor in zip(runs, ("1.0", "1.001"), strict=True):
        assert run_captured(script, run, factor, levels=(level,)).status == 0
    return runs


@pytest.mark.slow
def test_at_level_op_the_line_is_named(tmp_path: Path) -> None:
    first = compare(*both(tmp_path, "op")).first_difference
    assert first is not None
    assert (first.group, first.phase, first.step) == (Group.ORIGINATES, "backward", 0)
    assert first.line == SCRIPT[: SCRIPT.index("# FAULT")].count("\n") + 1
    assert first.function == "aten.mul.Tensor"


@pytest.mark.slow
def test_at_level_module_the_place_is_said_and_later_weights_are_consequences(tmp_path: Path) -> None:
    result = compare(*both(tmp_path, "module"))
    first = result.first_difference
    assert first is not None
    assert (first.group, first.phase, first.step, first.module) == (Group.UNDETERMINED, "backward", 0, "second")
    assert first.difference_class is DifferenceClass.CONSTANT_SCALE
    assert [finding.id for finding in result.findings] == ["F1"], "weights that differ at step 1 follow from step 0"
    assert result.outside == ()
