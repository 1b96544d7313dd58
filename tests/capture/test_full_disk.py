"""A disk that fills during a capture: the result is the workload's own, the run says what is missing (P6, EV-10)."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.evidence.calls import Call
from paritrace.evidence.journal import Loss
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.reading import open_run
from tests.cases.captures import DEADLINE_SECONDS, run_bare, run_python, write_script

SIZE_KIB = 400

TRAINING = """
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(8)))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(int(sys.argv[1])):
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex(), flush=True)
sys.exit(5)
"""
STEPS = "25"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_KIB}k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def calls_that_read(run_dir: Path) -> int:
    with open_run(run_dir) as run:
        (session,) = run.sessions
        assert session.status in (SessionStatus.INCOMPLETE, SessionStatus.INTERRUPTED)
        items = list(run.records(session.session_id))
    lost = [item for item in items if isinstance(item, Loss)]
    assert len(lost) <= 1
    return sum(isinstance(item, Call) for item in items)


@pytest.mark.slow
def test_a_disk_that_fills_is_told_and_the_workload_goes_on(small_disk: Path, tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", TRAINING)
    bare = run_bare(script, STEPS)
    run_dir = small_disk / "run"
    options = ("--level", "op", "--level", "module", "--steps", "0:100", "--no-diff")
    command = ("-m", "paritrace", "run", "-o", str(run_dir), *options, str(script), STEPS)
    done = run_python(*command, directory=tmp_path)
    assert (done.status, done.stdout) == (bare.status, bare.stdout) == (5, bare.stdout)
    assert "[disk_full]" in done.stderr
    assert "fix:" in done.stderr
    assert "the workload was not disturbed, the run is incomplete" in done.stderr
    assert "Traceback" not in done.stderr
    assert calls_that_read(run_dir) > 20
    checked = run_python("-m", "paritrace", "check", str(run_dir), directory=tmp_path)
    assert checked.status == 0, checked.stderr
    assert "completed" not in checked.stdout.partition("[coverage]")[2].splitlines()[0]


@pytest.mark.slow
def test_a_disk_without_room_for_a_run_is_refused_and_nothing_starts(small_disk: Path, tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", TRAINING)
    with (small_disk / "ballast").open("wb") as ballast:
        ballast.write(b"x" * (SIZE_KIB - 4) * 1024)
    command = ("-m", "paritrace", "run", "-o", str(small_disk / "run"), "--no-diff", str(script), "1")
    done = run_python(*command, directory=tmp_path)
    assert (done.status, done.stdout) == (125, "")
    assert "[disk_full]" in done.stderr
    assert "Traceback" not in done.stderr


LIMITED = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
runpy.run_module("paritrace", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_a_limit_on_the_size_of_files_is_a_full_disk_too(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", TRAINING)
    bare = run_bare(script, STEPS)
    run_dir = tmp_path / "run"
    capture = ["run", "-o", str(run_dir), "--level", "op", "--steps", "0:100"]
    done = subprocess.run(
        [warm.python(), "-c", LIMITED, *capture, "--no-diff", str(script), STEPS],
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (bare.status, bare.stdout)
    assert "the run is incomplete" in done.stderr
    assert "Traceback" not in done.stderr
    assert calls_that_read(run_dir) > 20
    assert (run_dir / "sessions" / "rank-0" / "calls.jsonl").stat().st_size <= 300_000
