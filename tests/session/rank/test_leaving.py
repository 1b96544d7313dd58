"""How a rank leaves whose workload does not come back by itself (SE-18, SE-34)."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

WAIT_SECONDS = 60.0  # a process starts and ends; only a broken one takes so long


def _stuck(folder: Path, how: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-m", "tests.session.rank.stuck_rank", str(folder), how])
    deadline = time.monotonic() + WAIT_SECONDS
    while not (_scratch(folder) / "building").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def _scratch(folder: Path) -> Path:
    return folder / "scratch" / "generation-1" / "rank-0"


def test_se18_a_rank_stuck_in_native_code_ends_when_its_coordinator_is_gone(tmp_path: Path) -> None:
    process = _stuck(tmp_path, "cut")
    assert process.wait(WAIT_SECONDS) == 1
    assert not (_scratch(tmp_path) / "closed").exists()


def test_se34_sigterm_reaches_the_work_thread_through_except_exception_and_close_is_called(tmp_path: Path) -> None:
    process = _stuck(tmp_path, "term")
    process.terminate()
    assert process.wait(WAIT_SECONDS) == 1
    assert (_scratch(tmp_path) / "closed").exists()


def test_a_stuck_rank_without_either_stays(tmp_path: Path) -> None:
    process = _stuck(tmp_path, "neither")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)  # longer than a rank outlives its coordinator
    process.kill()
    process.wait(WAIT_SECONDS)
