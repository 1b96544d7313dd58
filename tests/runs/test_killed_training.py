"""kill -9 at any time during a real capture: what was flushed is readable, and the run says what is known (EV-17)."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.evidence.calls import StepMark
from paritrace.evidence.journal import Loss
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.reading import open_run
from paritrace.runs.verify import Finding, verify

pytest.importorskip("torch")

TRAINING = """
import os
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100_000):
    loss = model(torch.randn(4, 8)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(os.getpid(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 30, 300])
def test_a_training_killed_in_the_middle(tmp_path: Path, after: int) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    command = [
        warm.python(),
        "-m",
        "paritrace",
        "run",
        "-o",
        "run",
        "--level",
        "op",
        "--steps",
        "0:100000",
        "train.py",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=warm.environment(), stdout=pipe, stderr=pipe) as child:
        assert child.stdout is not None
        for _ in range(after):
            pid = int(child.stdout.readline())
        os.kill(pid, signal.SIGKILL)
        child.wait(timeout=60)
    run = open_run(tmp_path / "run")
    (view,) = run.sessions
    assert (view.status, view.seen.words) == (SessionStatus.INTERRUPTED, "interrupted; cause unknown")
    items = list(run.records("rank-0"))
    steps = [item.step for item in items if isinstance(item, StepMark)]
    assert steps == list(range(len(steps)))
    assert sum(isinstance(item, Loss) for item in items) <= 1
    account = verify(run).journals[0].account
    assert account.record_bytes + account.torn_bytes + account.foreign_bytes == account.size
    assert verify(run).verdict is Finding.NOT_CHECKED
    assert after < 300 or len(steps) > 100
