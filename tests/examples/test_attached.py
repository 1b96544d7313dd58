"""Two lines in the plain script: it is stopped and goes on under torchrun, with the bits of the script without them."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from paritrace.errors import ParitraceError
from paritrace.session.client import Client
from paritrace.session.coordinator.detaching import start_detached
from paritrace.session.coordinator.opening_request import Opening

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 300
STEPS = 150
pytestmark = pytest.mark.slow


def launched(module: str, **environment: str) -> "subprocess.Popen[str]":
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    return subprocess.Popen(
        [*torchrun, "-m", module, "--steps", str(STEPS)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def weights_of(job: "subprocess.Popen[str]") -> set[str]:
    printed, _ = job.communicate(timeout=DEADLINE_SECONDS)
    assert job.returncode == 0
    found = re.findall(r"rank \d  weights ([0-9a-f]{64})", printed)
    assert len(found) == 2
    return set(found)


def test_se1a_a_script_with_two_lines_more_is_stopped_at_one_step_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    directory = tmp_path / "A"
    start_detached(Opening(str(directory), "", ranks=2, engine="attach"), tell=lambda _: None)
    attached, plain = launched("examples.resident.attached", PARITRACE_SESSION=str(directory)), None
    try:
        with Client(directory) as session:
            stopped = session.stop()
            assert {one.step for one in session.status().ranks} == {stopped.step}
            assert stopped.step is not None
            assert stopped.step < STEPS
            session.run(STEPS)
            plain = launched("examples.resident.plain")
            assert weights_of(attached) == weights_of(plain)
    finally:
        for job in (attached, plain):
            if job is not None and job.poll() is None:
                job.kill()
        with suppress(ParitraceError), Client(directory) as session:  # over, where the loop has come to its end
            session.close()
