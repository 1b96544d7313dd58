"""A real launcher: two ranks join one run, a restart opens an incarnation, another start is refused (EV-13, CA-3)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.runs.envelope import SessionStatus
from paritrace.runs.launch import Launcher
from paritrace.runs.reading import open_run
from paritrace.runs.verify import Finding, verify

pytest.importorskip("torch")

FLAKY = """
import os, sys
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "1":
    sys.exit(3)
"""


def launched(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *options]
    return subprocess.run(
        [*launcher, "-m", "paritrace", "run", "-o", "run", "train.py"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.slow
def test_ranks_join_a_restart_is_an_incarnation_and_another_start_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FLAKY)
    done = launched(tmp_path, "--max-restarts", "1")
    assert done.returncode == 0, done.stderr
    run = open_run(tmp_path / "run")
    assert run.envelope.start.launcher is Launcher.TORCHRUN
    assert [(view.rank, view.incarnation) for view in run.sessions] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert {view.row.world_size for view in run.sessions} == {2}
    assert run.sessions[3].status is SessionStatus.COMPLETED
    assert verify(run).counts["changed"] == verify(run).counts["missing"] == 0
    before = run.digest
    again = launched(tmp_path)
    assert again.returncode != 0
    assert "run_exists" in again.stderr
    assert open_run(tmp_path / "run").digest == before
    assert verify(open_run(tmp_path / "run")).verdict is not Finding.CHANGED
