"""The resident training in a session: the bits of its plain script, whatever it is asked in between (SE-1, SE-6)."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.session.client import Client, NotAppliedError
from paritrace.session.coordinator.detaching import start_detached
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.states import RankState

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 300
STEPS = 12
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def plain_weights() -> str:
    """What the plain script's weights are after so many steps, on both ranks."""
    # The ranks are of interpreters of their own, see test_ddp.py.
    torchrun = (warm.python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = subprocess.run(
        [*torchrun, "-m", "examples.resident.plain", "--steps", str(STEPS)],
        cwd=ROOT,
        env=warm.environment(PYTHON_EXEC=sys.executable),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    weights = re.findall(r"rank \d  weights ([0-9a-f]{64})", done.stdout)
    assert len(weights) == 2
    assert weights[0] == weights[1]
    return str(weights[0])


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    directory = tmp_path_factory.mktemp("resident") / "S"
    with pytest.MonkeyPatch.context() as patched, Client(directory) as client:
        patched.chdir(ROOT)
        patched.setenv("OMP_NUM_THREADS", "1")
        status = start_detached(Opening(str(directory), "tests.examples.telling:Telling", ranks=2), tell=lambda _: None)
        try:
            assert status.state is RankState.IDLE, status.error
            client.save("beginning")
            yield client
        finally:
            client.close()


@pytest.fixture
def session(started: Client) -> Client:
    """The one session of these tests, as it was before its first step."""
    if started.status().step:
        assert started.load("beginning").step == 0
    return started


def weights_of(session: Client) -> object:
    status = session.status()
    assert (status.metrics_step, status.step) == (STEPS - 1, STEPS)
    return status.metrics["weights"]


def test_se1_the_same_steps_give_the_bits_of_the_plain_script(session: Client, plain_weights: str) -> None:
    session.run(STEPS, autosave=False, wait=True)
    assert weights_of(session) == plain_weights


def test_se6_stopping_looking_saving_and_going_on_changes_no_bit(session: Client, plain_weights: str) -> None:
    session.run(STEPS, autosave=False)
    stopped = session.stop()
    assert {one.step for one in session.status().ranks} == {stopped.step}
    session.save("middle-of-it")
    session.preview({"length": 4})
    left = STEPS - (stopped.step or 0)
    if left:
        session.run(left, autosave=False, wait=True)
    assert weights_of(session) == plain_weights


def test_se8_steps_taken_again_from_a_checkpoint_are_the_same_bits(session: Client, plain_weights: str) -> None:
    session.run(STEPS // 2, autosave=False, wait=True)
    session.save("half")
    session.configure({"lr": 0.05})
    session.run(3, autosave=False, wait=True)
    assert session.load("half").step == STEPS // 2
    session.run(STEPS - STEPS // 2, autosave=False, wait=True)
    assert weights_of(session) == plain_weights


def test_se24_a_schedule_holds_for_its_run_only(session: Client) -> None:
    session.run(2, schedule={"lr": [[0, 0.5], [1, 0.25]]}, autosave=False, wait=True)
    assert session.status().metrics["lr"] == 0.25
    session.run(1, autosave=False, wait=True)
    assert session.status().metrics["lr"] == 0.001
    with pytest.raises(NotAppliedError) as refused:
        session.run(2, schedule={"width": [[0, 32]], "lr": [[5, 0.1]]}, autosave=False)
    assert any("cannot change between two steps" in one for one in refused.value.details)
    assert any("outside of the run's 2 steps" in one for one in refused.value.details)
