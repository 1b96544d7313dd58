"""A plain script with `paritrace.steps`, started by somebody else: under control, out of it, without any (SE-1a)."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

import paritrace
from paritrace import Session
from paritrace.errors import RequestError
from paritrace.session.client import NotAppliedError
from paritrace.session.looping import SESSION
from paritrace.session.opening import read_journal, read_session
from paritrace.session.states import RankState
from tests.session.engines.conformance import lives, within

NUM_STEPS = 1500  # of a hundredth of a second each: longer than what a test does to them
END_SECONDS = 120.0
LOOP = """
import os, sys, time
import paritrace
values = dict(lr=0.1)
for step in paritrace.steps(range({num_steps}), config=dict(values), configure=values.update):
    with open(sys.argv[1] + os.environ["RANK"], "w") as place:
        place.write(str(step))
    time.sleep(0.01)
    {then}
print("through", flush=True)
"""
Script = subprocess.Popen[str]
Launching = Callable[..., list[Script]]


@pytest.fixture
def launch(tmp_path: Path) -> Generator[Launching]:
    """`launch(code)`: two ranks that run a script, as a launcher starts them; ended after the test."""
    with ExitStack() as ends:

        def launched(*, then: str = "pass", num_steps: int = NUM_STEPS, session: Path | None = None) -> list[Script]:
            code = LOOP.format(num_steps=num_steps, then=then)
            path = os.pathsep.join(one or os.getcwd() for one in sys.path)
            scripts: list[Script] = []
            for rank in range(2):
                environment = {**os.environ, "PYTHONPATH": path, "RANK": str(rank), "WORLD_SIZE": "2"}
                if session is not None:
                    environment[SESSION] = str(session)
                script = subprocess.Popen(
                    [sys.executable, "-c", code, f"{tmp_path}/step-"],
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                scripts.append(ends.enter_context(script))
                ends.callback(script.kill)
            return scripts

        yield launched


@pytest.fixture
def session(tmp_path: Path) -> Generator[Session]:
    """A coordinator that waits for two ranks."""
    with Session.start(tmp_path / "session", "", ranks=2, engine="attach") as started:
        owner = read_session(started.directory).owner.pid
        yield started
    if lives(owner):
        os.kill(owner, signal.SIGKILL)


def through(scripts: list[Script]) -> list[str]:
    """Wait for the scripts to end by themselves; returns what they said on standard error."""
    said = [script.communicate(timeout=END_SECONDS) for script in scripts]
    assert [(script.returncode, out) for script, (out, _) in zip(scripts, said, strict=True)] == [(0, "through\n")] * 2
    return [err for _, err in said]


def running(session: Session) -> None:
    within(lambda: session.status().state is RankState.RUNNING and session.status().agreed)


@pytest.mark.slow
def test_se1a_a_plain_loop_stops_at_one_step_runs_some_and_goes_on_when_the_session_is_closed(
    session: Session, launch: Launching
) -> None:
    scripts = launch(session=session.directory)
    running(session)
    stopped = session.stop()
    assert stopped.step is not None
    status = session.status()
    assert (status.state, {view.step for view in status.ranks}) == (RankState.IDLE, {stopped.step})
    assert session.run(3, wait=True).step == stopped.step + 3
    assert {rank: "boundary" in text for rank, text in session.stacks().items()} == {0: True, 1: True}
    session.close()
    assert all("it goes on" in said for said in through(scripts))


@pytest.mark.slow
def test_se1a_a_plain_loop_is_configured_between_the_same_two_steps(
    session: Session, launch: Launching, tmp_path: Path
) -> None:
    then = "print(step, values['lr'], file=open(sys.argv[1] + 'lr' + os.environ['RANK'], 'a'), flush=True)"
    launch(then=then, session=session.directory)
    running(session)
    reply = session.configure({"lr": 0.5})
    assert reply.step is not None
    stopped = session.stop()
    assert stopped.step is not None
    assert stopped.step > reply.step
    for rank in range(2):
        seen = dict(line.split() for line in (tmp_path / f"step-lr{rank}").read_text().splitlines())
        assert (seen[str(reply.step - 1)], seen[str(reply.step)]) == ("0.1", "0.5")
    with pytest.raises(NotAppliedError) as refused:
        session.configure({"momentum": 0.9})
    assert refused.value.reply is not None
    assert {reason.rank for reason in refused.value.reply.reasons} == {0, 1}
    assert session.status().config_revision == 1
    session.close()


def test_se1a_a_configuration_without_what_changes_it_is_refused() -> None:
    with pytest.raises(RequestError, match="go together"):
        paritrace.steps(range(3), config={"lr": 1.0})


@pytest.mark.slow
def test_se16_losing_the_coordinator_ends_control_and_not_the_training_parked_or_not(
    session: Session, launch: Launching
) -> None:
    scripts = launch(session=session.directory, num_steps=300)
    running(session)
    session.stop()
    os.kill(read_session(session.directory).owner.pid, signal.SIGKILL)
    assert all("the coordinator is gone" in said for said in through(scripts))


@pytest.mark.slow
def test_se12_a_rank_that_raises_is_the_cause_and_the_other_trains_on_without_control(
    session: Session, launch: Launching
) -> None:
    scripts = launch(
        then="if step == 40 and os.environ['RANK'] == '1': raise ValueError('bad row')",
        num_steps=300,
        session=session.directory,
    )
    running(session)
    assert scripts[1].wait(END_SECONDS) == 1
    within(lambda: session.status().root_cause == "rank 1")
    status = session.status()
    assert status.control.startswith("disabled: ")
    assert any("bad row" in reason.words for reason in status.error)
    out, err = scripts[0].communicate(timeout=END_SECONDS)
    assert (scripts[0].returncode, out) == (0, "through\n")
    assert "it goes on" in err


@pytest.mark.slow
def test_f18_ranks_of_another_number_are_turned_away_and_train_without_control(
    tmp_path: Path, launch: Launching
) -> None:
    with Session.start(tmp_path / "session", "", ranks=3, engine="attach") as session:
        scripts = launch(num_steps=20, session=session.directory)
        assert all("it is one of 2 ranks, this session has 3" in said for said in through(scripts))
        began = time.monotonic()
        session.close()
        assert time.monotonic() - began < read_session(session.directory).bounds["close"], "nobody is there to wait for"
    assert read_journal(tmp_path / "session").lines[-1].what == "closed"


@pytest.mark.slow
def test_se1a_without_a_coordinator_the_loop_says_so_and_runs(tmp_path: Path, launch: Launching) -> None:
    scripts = launch(num_steps=3, session=tmp_path)
    assert all(said.startswith("paritrace: this process is not controlled: ") for said in through(scripts))


def test_se1a_without_a_session_steps_are_only_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SESSION, raising=False)
    assert list(paritrace.steps("abc", start=4)) == ["a", "b", "c"]
    with pytest.raises(RequestError):
        list(paritrace.steps("abc", start=-1))
