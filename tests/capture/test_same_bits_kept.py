"""Keeping tensors and module calls whole changes no bit, no dispatched call and no storage (CA-9, CA-14, CA-33)."""

from pathlib import Path

import pytest
import torch

import paritrace
from benchmarks.same_bits.counting import counted
from benchmarks.same_bits.table import bits_of
from benchmarks.same_bits.workloads import WORKLOADS
from paritrace.evidence.dumps import Dumped
from paritrace.runs.reading import open_run
from paritrace.runs.tensors import goldens

TRAININGS = ("bfloat16 autocast", "checkpointing, non-reentrant", "tied weights", "compiled model")


def keeping(run: Path) -> paritrace.trace:
    """Everything is asked for; the budget leaves a part of it out, which has to change nothing either."""
    return paritrace.trace(
        run, level=("module", "op"), steps=(0, 2), diff=False, dump=("function:*",), golden=("*",), dump_bytes="60kB"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_is_undisturbed(name: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    training = WORKLOADS[name]
    bare = bits_of(training)
    with keeping(tmp_path / "bits"):
        kept = bits_of(training)
    assert kept == bare
    assert looked_at(tmp_path / "bits")
    if "compiled" in name:  # a mode in Python decides which code runs
        return
    expected = counted(training())
    with keeping(tmp_path / "calls"):
        seen = counted(training())
    assert seen.names == expected.names
    assert seen.resizable == expected.resizable


def looked_at(path: Path) -> bool:
    """The test above would pass for a capture that keeps nothing."""
    with open_run(path) as run:
        stored = [record for record in run.records("rank-0") if isinstance(record, Dumped)]
        calls = goldens(run)
    return any(isinstance(line.tensor, str) for line in stored) and bool(calls)
