"""Which module call a recorded call is judged in: the innermost one, and which of its step (CP-26)."""

from pathlib import Path

import torch
from torch import nn

import paritrace
from paritrace.compare.enclosing import Enclosing, enclosing
from paritrace.compare.load import Recorded, load
from paritrace.compare.settings import Settings
from paritrace.runs.reading import open_run


class Twice(nn.Module):
    """Calls one module twice, with an operator of its own between."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inner(torch.tanh(self.inner(x)))
        return out


def captured(path: Path) -> Recorded:
    model = nn.Sequential(Twice(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with paritrace.trace(path, level=("module", "op"), steps=(0, 2), diff=False):
        for _ in range(2):
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()
    with open_run(path) as run:
        return load(run, run.sessions[0], settings=Settings())


def found(recorded: Recorded, function: str, *, step: int = 1, outer: bool = False) -> list[Enclosing | None]:
    return [
        enclosing(recorded, call.id, outer=outer)
        for call in recorded.calls
        if recorded.functions[call.function].name.endswith(function) and recorded.contexts[call.context].step == step
    ]


def test_cp26_the_innermost_module_call_and_its_number_in_the_step(tmp_path: Path) -> None:
    recorded = captured(tmp_path / "run")
    linear = [(of.module, of.number, of.itself) for of in found(recorded, "aten.addmm.default") if of is not None]
    assert linear == [("0.inner", 0, False), ("0.inner", 1, False), ("1", 0, False)]
    (tanh,) = found(recorded, "aten.tanh.default")
    assert tanh is not None
    assert (tanh.module, tanh.number, tanh.step, tanh.cls.rpartition(".")[2]) == ("0", 0, 1, "Twice")
    (backward,) = found(recorded, "aten.tanh_backward.default")
    assert backward is not None
    assert (backward.module, backward.number) == ("0", 0)


def test_cp26_a_modules_own_call_is_itself_and_outer_is_the_module_around_it(tmp_path: Path) -> None:
    recorded = captured(tmp_path / "run")
    forward = [of for of in found(recorded, "linear.Linear", step=0) if of is not None][:2]
    assert [(of.module, of.number, of.itself) for of in forward] == [("0.inner", 0, True), ("0.inner", 1, True)]
    outer = [of for of in found(recorded, "linear.Linear", step=0, outer=True) if of is not None][:2]
    assert [(of.module, of.number, of.itself) for of in outer] == [("0", 0, False), ("0", 0, False)]


def test_cp26_an_optimizers_operators_are_in_no_module(tmp_path: Path) -> None:
    recorded = captured(tmp_path / "run")
    assert found(recorded, "aten.add_.Tensor")
    assert not [of for of in found(recorded, "aten.add_.Tensor") if of is not None]
    assert enclosing(recorded, 10**9) is None
