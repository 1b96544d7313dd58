"""A coordinator as a process of its own: driven, killed, started again (SE-2, SE-4, SE-7, SE-14, SE-15, SE-18)."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from paritrace import Session
from paritrace.errors import HostError, RequestError
from paritrace.session.client import NotAppliedError, Options
from paritrace.session.commands import Fences, Kind, Result
from paritrace.session.opening import read_journal, read_session, read_token
from paritrace.session.states import RankState
from paritrace.session.status import Status
from tests.session.coordinator.workloads import SMALL

CLOSE_NOW_SECONDS = 5.0  # what `close --help` promises
LONG_SECONDS = 60.0  # only a broken coordinator takes so long
MOST_RESIDENT_KIB = 90 * 1024  # the aim is 60 MiB; interpreters and allocators differ

Starting = Callable[..., Session]


def until(holds: Callable[[], bool]) -> None:
    """Wait for something, or fail."""
    deadline = time.monotonic() + LONG_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def pids(status: Status) -> list[int]:
    return [view.pid for view in status.ranks if view.pid is not None]


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits for its parent to look."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def start(tmp_path: Path) -> Generator[Starting]:
    """`start(**arguments)`: a session of two ranks in `tmp_path/session`, ended after the test."""

    def started(ranks: int = 2, **arguments: object) -> Session:
        return Session.start(tmp_path / "session", SMALL, ranks=ranks, arguments=arguments)

    yield started
    if (tmp_path / "session" / "session.json").exists():
        owner = read_session(tmp_path / "session").owner.pid
        if not has_ended(owner):
            os.kill(owner, signal.SIGKILL)
            until(lambda: has_ended(owner))


def test_se2_nothing_of_a_coordinator_imports_torch_and_nothing_of_it_waits_for_fastapi() -> None:
    modules = "paritrace.session.coordinator.detached, paritrace.session.engines.local"
    said = subprocess.run(
        [sys.executable, "-c", f"import sys, {modules}\nprint([n for n in ('torch', 'fastapi') if n in sys.modules])"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert said.stdout == "[]\n"


def test_se17_a_session_is_run_stopped_looked_at_and_closed(start: Starting, tmp_path: Path) -> None:
    with start() as session:
        assert session.status().state is RankState.IDLE
        assert session.run(10, wait=True).step == 10
        goes_on = session.waited(session.run(1_000_000), until=time.monotonic())
        assert (goes_on.result, goes_on.reasons[0].code) == (Result.UNKNOWN, "under_way")
        stopped = session.stop()
        assert stopped.step is not None
        status = session.status()
        assert (status.state, status.step, {view.step for view in status.ranks}) == (
            RankState.IDLE,
            stopped.step,
            {stopped.step},
        )
        assert status.epoch == 3
        told = [event.what for event in session.events().events]
        assert told.count("result") == 3
        owner = read_session(session.directory).owner.pid
        assert "libtorch" not in Path(f"/proc/{owner}/maps").read_text()
        resident = next(
            line for line in Path(f"/proc/{owner}/status").read_text().splitlines() if line.startswith("VmRSS")
        )
        assert int(resident.split()[1]) < MOST_RESIDENT_KIB
        session.close()
    until(lambda: has_ended(owner))
    assert read_journal(tmp_path / "session").lines[-1].what == "closed"


@pytest.mark.slow
def test_se17_the_same_verbs_through_the_command_line_and_http(start: Starting, tmp_path: Path) -> None:
    with start() as session:
        directory = session.directory

        def shell(*words: str) -> tuple[int, dict[str, object]]:
            done = subprocess.run(
                [sys.executable, "-m", "paritrace", "session", words[0], str(directory), *words[1:], "--json"],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                check=False,
            )
            return done.returncode, json.loads(done.stdout)

        def over_http(kind: str, body: dict[str, object]) -> dict[str, object]:
            record = read_session(directory)
            connection = HTTPConnection(record.host, record.port, timeout=LONG_SECONDS)
            headers = {"Authorization": f"Bearer {read_token(directory)}"}
            connection.request("POST", f"/v1/commands/{kind}?wait_seconds=60", json.dumps({"body": body}), headers)
            found: dict[str, object] = json.loads(connection.getresponse().read())["reply"]
            connection.close()
            return found

        for door, step in (("python", 3), ("cli", 6), ("http", 9)):
            if door == "python":
                assert session.run(3, wait=True).result is Result.APPLIED
                assert session.configure({"rate": 2.0}).facts["changed"] == ["rate"]
            elif door == "cli":
                assert shell("run", "3", "--wait")[0] == 0
                status, reply = shell("configure", "--set", "rate=3.0")
                assert (status, reply["result"]) == (0, "applied")
            else:
                assert over_http("run", {"steps": 3})["result"] == "applied"
                session.wait_until_idle()
                assert over_http("configure", {"values": {"rate": 4.0}})["result"] == "applied"
            assert session.status().step == step
        assert session.config()["revision"] == 3
        assert [session.config(r)["settings"][0]["value"] for r in range(4)] == [1.0, 2.0, 3.0, 4.0]
        assert session.status().metrics["total"] == 3 * 1.0 + 3 * 2.0 + 3 * 3.0
        status, reply = shell("configure", "--set", "width=5")
        assert (status, reply["result"]) == (2, "refused")
        assert shell("run", "3", "--dry-run") == (0, {"would": "begin"})
        assert shell("status")[1]["state"] == "idle"
        assert shell("config")[1]["revision"] == 3
        session.close()
    assert shell("status")[0] == 2


@pytest.mark.slow
def test_se4_a_command_under_a_wrong_belief_is_cancelled_naming_both_values(start: Starting) -> None:
    with start(ranks=1) as session:
        for fences, words in (
            (Fences(generation=9), "expected generation 9, it is 1"),
            (Fences(step=9), "expected step 9, it is 0"),
            (Fences(config_revision=9), "expected config_revision 9, it is 0"),
        ):
            with pytest.raises(NotAppliedError) as cancelled:
                session.run(1, options=Options(fences=fences))
            assert cancelled.value.reply is not None
            assert cancelled.value.reply.result is Result.CANCELLED
            assert cancelled.value.reply.reasons[0].words == words
        assert session.run(1, wait=True, options=Options(fences=Fences(1, 0, 0))).step == 1


@pytest.mark.slow
def test_se18_a_second_owner_is_refused_and_the_first_goes_on(start: Starting) -> None:
    with start(ranks=1) as session:
        with pytest.raises(HostError) as refused:
            Session.start(session.directory, SMALL)
        assert refused.value.code == "coordinator_not_started"
        assert any("session_owned" in line for line in refused.value.details)
        assert session.run(1, wait=True).step == 1


@pytest.mark.slow
def test_se18_after_a_coordinator_is_killed_ranks_are_gone_and_the_next_one_says_what_was_in_flight(
    start: Starting, tmp_path: Path
) -> None:
    session = start(hang_at=2, release=str(tmp_path / "never"))
    session.run(10)
    until(lambda: session.status().step == 2)
    waiting = threading.Thread(target=lambda: _stop_in_vain(session.directory, "the-stop"), daemon=True)
    waiting.start()
    until(lambda: session.status().command is not None)
    status = session.status()
    os.kill(read_session(session.directory).owner.pid, signal.SIGKILL)
    until(lambda: all(has_ended(pid) for pid in pids(status)))
    waiting.join(LONG_SECONDS)
    with pytest.raises(HostError) as gone:
        session.status()
    assert gone.value.code == "coordinator_gone"
    assert any("in flight: stop the-stop" in line for line in gone.value.details)

    again = start()
    assert again.status().generation == 2
    assert "in flight when the last coordinator ended: stop the-stop" in (
        (session.directory / "logs" / "coordinator.log").read_text()
    )
    reply = again.reconcile("the-stop").reply
    assert reply is not None
    assert (reply.result, reply.reasons[0].code) == (Result.CANCELLED, "coordinator_ended")
    assert again.ask(Kind.STOP, {}, Options(id="the-stop")) == reply
    with pytest.raises(RequestError) as taken:
        again.ask(Kind.CLOSE, {}, Options(id="the-stop"))
    assert taken.value.code == "command_id_taken"
    again.close()


def _stop_in_vain(directory: Path, command_id: str) -> None:
    with Session(directory) as session, pytest.raises(HostError):
        session.stop(options=Options(id=command_id))


@pytest.mark.slow
def test_se7_a_caller_who_gives_up_is_told_unknown_and_finds_the_result_by_its_id(
    start: Starting, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    with start(hang_at=2, release=str(release)) as session:
        session.run(10)
        until(lambda: session.status().step == 2)
        with pytest.raises(NotAppliedError) as unknown:
            session.stop(options=Options(id="s", timeout_seconds=0.1))
        assert unknown.value.reply is not None
        assert unknown.value.reply.result is Result.UNKNOWN
        with pytest.raises(NotAppliedError) as withdrawn:
            session.stop(options=Options(id="t", timeout_seconds=0.1))
        assert withdrawn.value.reply is not None
        assert withdrawn.value.reply.result is Result.CANCELLED
        release.touch()
        told = session.reconcile("s", wait_seconds=LONG_SECONDS)
        assert told.reply is not None
        assert (told.reply.result, told.reply.step) == (Result.APPLIED, 3)


@pytest.mark.slow
def test_se20_a_killed_rank_ends_its_generation_and_rebuild_begins_the_next(start: Starting) -> None:
    with start() as session:
        session.run(1_000_000)
        until(lambda: (session.status().step or 0) > 5)
        session.inputs({"text": "second"})
        os.kill(pids(session.status())[1], signal.SIGKILL)
        status = session.wait_until_idle()
        assert (status.state, status.root_cause) == (RankState.ERROR, "rank 1")
        until(lambda: session.status().failure_report is not None)
        report = session.directory / "failures" / "1.json"
        assert session.status().failure_report == "failures/1.json"
        assert stat.S_IMODE(report.stat().st_mode) == 0o600
        with pytest.raises(NotAppliedError) as refused:
            session.run(1)
        assert refused.value.reply is not None
        assert refused.value.reply.reasons[0].code == "session_in_error"
        session.rebuild()
        assert (session.status().generation, session.status().config_revision) == (2, 1)
        assert session.status().inputs["digest"] == "digest-of-second"
        session.configure({"rate": 2.0}, inputs={"text": "third"})
        said = [line.facts["digest"] for line in read_journal(session.directory).lines if line.what == "inputs"]
        assert said == ["digest-of-second", "digest-of-third"]
        assert session.run(3, wait=True).step == 3
        assert report.exists()


@pytest.mark.slow
def test_se12_a_step_that_raises_is_told_to_whoever_waits_for_its_run(start: Starting) -> None:
    with start(fail_at=4) as session:
        with pytest.raises(NotAppliedError) as failed:
            session.run(10, wait=True)
        assert any("step 4 fails" in line for line in failed.value.details)
        assert session.status().root_cause is not None


@pytest.mark.slow
def test_se12_a_rank_whose_workload_closes_our_descriptors_is_the_cause_and_ends_with_the_others(
    start: Starting,
) -> None:
    with start(closes_at=4) as session:
        ranks = pids(session.status())
        with pytest.raises(NotAppliedError) as failed:
            session.run(10_000, wait=True)
        assert any("it has not ended" in line or "exited with status 1" in line for line in failed.value.details)
        assert session.status().root_cause == "rank 1"
        until(lambda: all(has_ended(pid) for pid in ranks))


@pytest.mark.slow
def test_se2_ranks_that_do_not_become_ready_are_told_with_their_reasons(start: Starting) -> None:
    with pytest.raises(HostError) as failed:
        start(fail_build=True)
    assert failed.value.code == "ranks_not_ready"
    assert any("no such device" in line for line in failed.value.details)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_se18_a_signal_closes_the_session(start: Starting, number: signal.Signals) -> None:
    with start() as session:
        session.run(1_000_000)
        status = session.status()
        owner = read_session(session.directory).owner.pid
        os.kill(owner, number)
        until(lambda: has_ended(owner))
        assert all(has_ended(pid) for pid in pids(status))
        assert read_journal(session.directory).lines[-1].what == "closed"


@pytest.mark.slow
def test_se21_close_now_overtakes_a_close_that_waits_for_a_rank_in_native_code_and_one_that_is_stopped(
    start: Starting,
) -> None:
    with start(native_at=3) as session:
        session.run(100)
        until(lambda: session.status().ranks[0].step == 100)
        ranks = pids(session.status())
        os.kill(ranks[0], signal.SIGSTOP)
        with pytest.raises(NotAppliedError) as waits:
            session.close(options=Options(id="patient", timeout_seconds=0.1))
        assert waits.value.reply is not None
        assert waits.value.reply.result is Result.UNKNOWN
        began = time.monotonic()
        assert session.close(now=True).notes == (
            "ended without waiting: ranks 0, 1; failures/1.json says what each was at",
        )
        assert all(has_ended(pid) for pid in ranks)
        assert time.monotonic() - began < CLOSE_NOW_SECONDS
        lines = read_journal(session.directory).lines
        results = {str(line.facts["id"]): line.facts["result"] for line in lines if line.what == "result"}
        assert results.pop("patient") == "applied"
        exits = [line.facts["words"] for line in lines if line.what == "exit"]
        assert exits[1] == "ended by SIGKILL, sent by us"
        report = json.loads((session.directory / "failures" / "1.json").read_text())
        assert report["code"] == "closed_at_once"
        assert "in step" in report["ranks"][1]["stacks"]  # where it was stuck


@pytest.mark.slow
def test_se17_while_one_program_writes_others_only_look(start: Starting) -> None:
    with start(ranks=1) as session, Session(session.directory) as other:
        with session.writing("Ada"):
            session.run(1, wait=True)
            with pytest.raises(RequestError) as held:
                other.run(1)
            assert held.value.code == "lease_held"
            assert other.status().step == 1
        assert other.run(1, wait=True).step == 2


@pytest.mark.slow
def test_se14_the_coordinator_in_the_foreground_says_one_line_and_goes_on(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "paritrace", "session", "start", str(tmp_path / "s"), SMALL]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "paritrace session status" in line
        with Session(tmp_path / "s") as session:
            until(lambda: _state(session) is RankState.IDLE)
            session.close()
        out, err = process.communicate(timeout=LONG_SECONDS)
    assert (process.returncode, out) == (0, "")
    assert err.splitlines()[-1] == "closed"


def _state(session: Session) -> RankState:
    return session.status().state
