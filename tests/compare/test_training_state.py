"""What a scheduler, a scaler or a sampler does to a run is named, and what makes no difference is not (CA-29, CP-8)."""

import gc
from pathlib import Path

import pytest

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.result import Comparison, Mark
from paritrace.runs.reading import open_run

pytest.importorskip("torch")

import torch
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(run: Path, *, seed: int = 5, gamma: float = 0.9, scale: float = 4.0, shuffle: bool = True) -> Path:
    gc.collect()  # what an earlier training left is not of this one
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
    sampler: DistributedSampler[int] = DistributedSampler(data, num_replicas=2, rank=0, seed=seed, shuffle=shuffle)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = StepLR(optimizer, 1, gamma=gamma)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    with paritrace.trace(run, diff=False):
        for batch, target in DataLoader(data, batch_size=4, sampler=sampler):
            scaler.scale((model(batch) - target).square().mean()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            scheduler.step()
    return run


def compared(a: Path, b: Path) -> Comparison:
    with open_run(a) as ours, open_run(b) as theirs:
        return compare(ours, theirs).result


def outside(of: Comparison) -> set[str]:
    return {f"{state.group} {state.name}" for state in of.outside}


def test_each_is_named_as_what_differed_before_any_call(tmp_path: Path) -> None:
    base = train(tmp_path / "base")
    gamma = compared(base, train(tmp_path / "gamma", gamma=0.5))
    assert "scheduler StepLR.gamma" in outside(gamma)
    assert gamma.ladder["config"] is Mark.BEYOND
    scale = compared(base, train(tmp_path / "scale", scale=8.0))
    assert {"scaler GradScaler.init_scale"} <= outside(scale)
    seed = compared(base, train(tmp_path / "seed", seed=6))
    assert "sampler DistributedSampler.seed" in outside(seed)
    assert seed.ladder["data"] is Mark.BEYOND


def test_a_sampler_that_gives_the_same_data_is_no_difference(tmp_path: Path) -> None:
    base = train(tmp_path / "base", shuffle=False)
    other = compared(base, train(tmp_path / "seed", seed=6, shuffle=False))
    assert (other.findings, other.outside, other.first_difference) == ((), (), None)


def test_the_same_training_twice_agrees(tmp_path: Path) -> None:
    again = compared(train(tmp_path / "one"), train(tmp_path / "two"))
    assert (again.findings, again.outside, again.first_difference) == ((), (), None)
    assert again.ladder["config"] in (Mark.AGREES, Mark.UNDETERMINED)
    names = again.coverage["baseline"].not_captured
    assert not [name for name in names if name.startswith(("scheduler (", "grad_scaler (", "sampler_position ("))]


def draw_and_train(run: Path, *, steps: int, seed: int = 3) -> Path:
    gc.collect()
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(seed)
    with paritrace.trace(run, diff=False):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
    return run


def test_a_run_that_ends_earlier_does_not_draw_other_random_numbers(tmp_path: Path) -> None:
    """CA-29, CP-8: its last state is that of its end, the other's that after the next batch was drawn."""
    short, long = draw_and_train(tmp_path / "short", steps=2), draw_and_train(tmp_path / "long", steps=4)
    for found in (compared(short, long), compared(long, short)):
        assert found.first_difference is None
        assert outside(found) == set()
        assert found.ladder["rng"] is Mark.AGREES
    other = compared(short, draw_and_train(tmp_path / "other", steps=4, seed=4))
    assert other.ladder["rng"] is Mark.BEYOND
