"""Ranks and loader workers that the workload spawns itself are counted, by what they are for (CA-10, CA-3)."""

from pathlib import Path

import pytest

from paritrace.compare.checks import check
from paritrace.compare.checks_result import Outcome
from paritrace.evidence.calls import GapMark
from paritrace.evidence.journal import Loss
from paritrace.runs.reading import open_run
from tests.cases.captures import run_bare, run_captured, write_script

pytest.importorskip("torch")

SPAWNING = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    total = torch.ones(1)
    dist.all_reduce(total)
    dist.destroy_process_group()


if __name__ == "__main__":
    import sys

    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
    loader = DataLoader(
        TensorDataset(torch.arange(4.0)), batch_size=2, num_workers=1, multiprocessing_context="forkserver"
    )
    print(sum(float(batch.sum()) for (batch,) in loader), flush=True)
"""


@pytest.mark.slow
def test_spawned_ranks_and_workers_are_said(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", SPAWNING)
    for folder in ("bare", "seen"):
        (tmp_path / folder).mkdir()
    bare = run_bare(script, str(tmp_path / "bare"))
    captured = run_captured(script, tmp_path / "run", str(tmp_path / "seen"))
    assert (captured.status, captured.stdout) == (bare.status, bare.stdout) == (0, "6.0\n"), captured.stderr
    assert ", not 2 spawned processes (ranks? start them by --launcher)" in captured.stderr
    with open_run(tmp_path / "run") as run:
        (session,) = run.sessions
        found = [record for record in run.records(session.session_id) if not isinstance(record, Loss)]
        marks = [record for record in found if isinstance(record, GapMark)]
        spawned = [mark.detail for mark in marks if mark.reason == "spawned_child_not_covered"]
        assert sorted(spawned) == [
            "data loader worker",
            "torch.multiprocessing.spawn",
            "torch.multiprocessing.spawn",
        ]
        assert session.receipt is not None
        assert session.receipt.counts.gaps["spawned_child_not_covered"] == 3
        (observed,) = [i for i in check(run).invariants if i.id == "evidence.all_observed"]
        assert observed.status is Outcome.NOT_CHECKABLE
        assert "spawned_child_not_covered: 3" in observed.evidence.reason
