"""A training without modules: its parameters are known by the optimizer, step by step (CA-29)."""

from pathlib import Path
from typing import Any

import torch

import paritrace
from paritrace.evidence.calls import State, StateNames
from paritrace.runs.reading import open_run


def train(run: Path, *, level: str) -> None:
    torch.manual_seed(0)
    weight = torch.randn(3, 3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    with paritrace.trace(run, level=level, steps=(0, 9), diff=False):
        for _ in range(3):
            loss: Any = (torch.randn(2, 3) @ weight).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def states(run: Path, group: str) -> dict[int, tuple[str, ...]]:
    names: dict[int, StateNames] = {}
    found: dict[int, tuple[str, ...]] = {}
    for record in open_run(run).records("rank-0"):
        if isinstance(record, StateNames):
            names[record.id] = record
        if isinstance(record, State) and names[record.names].group == group:
            found[record.step] = names[record.names].names
            assert all(isinstance(value, str) for value in record.values)
    return found


def test_parameters_and_optimizer_state_are_in_the_inventory_of_each_step(tmp_path: Path) -> None:
    for level in ("digest", "op"):
        train(tmp_path / level, level=level)
        # The optimizer is first met at the end of step 0; what step 2 left is the begin of step 3.
        expected = dict.fromkeys((1, 2, 3), ("group0.parameter0",))
        assert states(tmp_path / level, "parameter") == expected
        assert states(tmp_path / level, "optimizer_state") == dict.fromkeys(
            (1, 2, 3), ("group0.parameter0:momentum_buffer",)
        )
        assert sorted(states(tmp_path / level, "rng")) == [0, 1, 2, 3]
