"""A-18: weights agree byte for byte, and what scales them was not captured: no equal model is claimed."""

from pathlib import Path
from typing import Any

import torch

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.result import Comparison
from paritrace.compare.resume_boundary import parse_resume
from paritrace.compare.resume_joined import resumed
from paritrace.compare.settings import Settings
from paritrace.reports.headline import statement
from paritrace.runs.reading import open_run


class Scaled(torch.nn.Linear):
    """A layer with a history of its own beside its weights, as FP8 layers have."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.history: Any = object()

    def get_extra_state(self) -> Any:
        return self.history

    def set_extra_state(self, state: Any) -> None:
        self.history = state


def train(run: Path, *, first: int) -> Path:
    torch.manual_seed(0)
    model = Scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with paritrace.trace(run, steps=(0, 9), diff=False):
        for step in range(first, 3):
            paritrace.step(step)
            torch.autograd.backward(model(torch.ones(1, 2)).sum())
            optimizer.step()
            optimizer.zero_grad()
    return run


def found(tmp_path: Path) -> Comparison:
    paths = (train(tmp_path / "whole", first=0), train(tmp_path / "resumed", first=2))
    with open_run(paths[0]) as ours, open_run(paths[1]) as theirs:
        settings = resumed((ours, theirs), parse_resume("2"), settings=Settings())
        return compare(ours, theirs, settings).result


def test_weights_that_agree_are_no_equal_model(tmp_path: Path) -> None:
    told = found(tmp_path)
    assert told.resume is not None
    (weights,) = (part for part in told.resume.parts if part.group == "parameter")
    assert (weights.agree, weights.differ) == (2, 0)
    extra = [name for name in told.resume.not_captured["candidate"] if "extra_state" in name]
    assert extra, "what was not captured is named"
    _, sentence, strength = statement(told)
    assert "begins step 2 as its continuation does" in sentence
    assert strength.startswith("no equal state is claimed; not captured: ")
