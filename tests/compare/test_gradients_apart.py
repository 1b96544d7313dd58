"""A parameter that gets a gradient on one side alone is named, whatever else differs (CP-8, CA-29)."""

from pathlib import Path

import torch
from torch import nn

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.result import Comparison, Group
from paritrace.compare.settings import Settings
from paritrace.runs.reading import open_run


def capture(run: Path, *, dropped: tuple[str, ...] = (), from_step: int = 0, eps: float = 1e-5) -> Path:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8, eps=eps), nn.Linear(8, 4))
    unused = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([*model.parameters(), unused], lr=1e-2)
    with paritrace.trace(run, steps=(0, 3), diff=False):
        for step in range(3):
            loss = model(torch.randn(5, 8)).square().mean()
            torch.autograd.backward(loss)
            for name in dropped if step >= from_step else ():
                model.get_parameter(name).grad = None
            optimizer.step()
            optimizer.zero_grad()
    return run


def compared(ours: Path, theirs: Path) -> Comparison:
    return compare(open_run(ours), open_run(theirs), Settings()).result


def test_cp8_a_gradient_that_one_side_alone_has_is_the_finding(tmp_path: Path) -> None:
    ours = capture(tmp_path / "a")
    theirs = capture(tmp_path / "b", dropped=("2.weight", "2.bias"), from_step=1)
    found = compared(ours, theirs).findings[0]
    assert (found.place.group, found.place.step, found.place.phase) == (Group.OUTSIDE, 1, "backward")
    assert (found.place.function, found.place.slot, found.place.module) == ("gradient", "2.weight", "2")
    assert "the baseline alone has a gradient of 2.weight (1 more on one side alone)" in found.sentence
    assert found.strength == "there or not: no size, and no round-off makes it"


def test_cp8_the_mirror_names_the_other_side(tmp_path: Path) -> None:
    ours, theirs = capture(tmp_path / "a", dropped=("0.bias",)), capture(tmp_path / "b")
    found = compared(ours, theirs).findings[0]
    assert "the candidate alone has a gradient of 0.bias" in found.sentence


def test_cp8_what_parts_before_stands_before_it(tmp_path: Path) -> None:
    ours, theirs = capture(tmp_path / "a"), capture(tmp_path / "b", dropped=("2.weight",), eps=1e-3)
    first, *others = compared(ours, theirs).findings
    assert (first.place.module, first.place.phase) == ("1", "forward")
    assert any("alone has a gradient of 2.weight" in found.sentence for found in others)


def test_cp8_a_gradient_that_neither_side_has_is_no_difference(tmp_path: Path) -> None:
    ours, theirs = capture(tmp_path / "a", dropped=("0.bias",)), capture(tmp_path / "b", dropped=("0.bias",))
    result = compared(ours, theirs)
    assert not result.findings
    assert result.first_difference is None
