"""Recorded commands, run from this process: the right cause each time, never a guess (SC-1, SC-2, SC-4, E-01, E-17)."""

import os
import signal
import sys
from pathlib import Path

import pytest

from paritrace.process.stop_facts import ExchangeEnd, Exited, Signalled, StopCause, StopGap
from paritrace.runs.command_watch import Watching
from paritrace.runs.record_ends import RecordStatus
from paritrace.runs.record_reading import RecordState
from paritrace.runs.record_words import end_words
from paritrace.runs.recorded_command import RecordedCommand
from tests.runs.recording import python, recorded, shell, the_record, when_there

TERM_IGNORED = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"


def words(done: RecordedCommand) -> str:
    return "\n".join(end_words(done.end))


def test_success_has_no_cause(tmp_path: Path) -> None:
    done = shell(tmp_path, "exit 0")
    assert (done.status, done.end.status, done.end.stop, done.end.error) == (0, RecordStatus.SUCCEEDED, None, None)
    read = the_record(tmp_path)
    assert (read.state, read.end, read.start, read.problems) == (RecordState.COMPLETE, done.end, done.start, ())


@pytest.mark.parametrize("code", [1, 124, 137])
def test_an_exit_code_is_the_commands_own_and_proves_nothing(tmp_path: Path, code: int) -> None:
    done = shell(tmp_path, f"exit {code}")
    assert done.status == code
    assert done.end.stop is not None
    assert (done.end.stop.cause, done.end.stop.exit) == (StopCause.COMMAND_FAILED, Exited(code))
    assert f"exit code {code}" in words(done)
    assert "memory" not in words(done)


def test_a_signal_that_we_did_not_send_is_unclassified(tmp_path: Path) -> None:
    done = shell(tmp_path, "kill -9 $$")
    assert done.status == 137
    assert done.end.stop is not None
    assert (done.end.stop.cause, done.end.stop.exit) == (StopCause.UNCLASSIFIED, Signalled(9))
    assert "signal 9 (SIGKILL); what caused it is not known" in words(done)
    assert "memory" not in words(done)


def test_a_kill_from_outside_is_told_by_its_wait_status_alone(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    killer = when_there(pid_file, lambda pid: os.kill(int(pid), signal.SIGKILL))
    done = shell(tmp_path / "run", f"echo $$ > {pid_file}; exec sleep 60")
    killer.join()
    assert done.end.stop is not None
    assert (done.end.stop.cause, done.end.facts.wait) == (StopCause.UNCLASSIFIED, Signalled(9))
    assert done.end.facts.sent == ()


def test_our_timer_has_its_time_and_the_end_of_the_host_has_its_own(tmp_path: Path) -> None:
    done = shell(tmp_path, "sleep 60", timeout_seconds=0.2)
    stop, facts = done.end.stop, done.end.facts
    assert stop is not None
    assert (stop.cause, stop.force_stopped, stop.exit) == (StopCause.AGENT_EXHAUSTED_BUDGET, False, Signalled(15))
    assert stop.timeout_seconds == 0.2
    assert facts.timer is not None
    assert facts.timer.fired_ns is not None
    assert facts.ended_ns == facts.timer.fired_ns
    assert facts.host_ended_ns is not None
    assert facts.host_ended_ns > facts.timer.fired_ns
    ended = (facts.host_ended_ns - facts.timer.set_ns) / 1e9
    assert f"fired after {stop.used_seconds:.3f} s; told to end, signal 15 (SIGTERM), it ended {ended:.3f} s" in words(
        done
    )
    assert done.end.resources is not None, "the tree is read before it is ended (RS-11)"
    assert done.end.resources.process_count in (1, 2)


@pytest.mark.slow
def test_a_command_that_ignores_us_is_killed_after_the_grace(tmp_path: Path) -> None:
    done = python(tmp_path, TERM_IGNORED, timeout_seconds=0.5)
    assert done.status == 137
    assert done.end.stop is not None
    assert (done.end.stop.force_stopped, done.end.stop.exit) == (True, Signalled(9))
    assert [one.why for one in done.end.facts.sent if one.signal == signal.SIGKILL] == ["grace_over"]
    assert done.end.facts.victims == (), "a SIGKILL of ours has no other sender"


def test_one_that_exits_inside_the_grace_reports_its_own_status(tmp_path: Path) -> None:
    done = shell(tmp_path, "trap 'exit 3' TERM; while :; do sleep 0.05; done", timeout_seconds=0.3)
    assert done.status == 3
    assert done.end.stop is not None
    assert (done.end.stop.cause, done.end.stop.exit) == (StopCause.AGENT_EXHAUSTED_BUDGET, Exited(3))
    assert done.end.stop.force_stopped is False


def test_a_stopped_command_is_woken_to_hear_that_its_time_is_up(tmp_path: Path) -> None:
    done = shell(tmp_path, "kill -STOP $$", timeout_seconds=0.5)
    assert done.end.stop is not None
    assert (done.end.stop.cause, done.end.stop.exit) == (StopCause.AGENT_EXHAUSTED_BUDGET, Signalled(15))
    assert [one.signal for one in done.end.facts.stopped] == [signal.SIGSTOP]
    assert "stopped by SIGSTOP" in words(done)


def test_a_command_that_ends_before_its_time_leaves_no_timer_behind(tmp_path: Path) -> None:
    done = shell(tmp_path, "exit 0", timeout_seconds=30)
    assert done.end.facts.timer is not None
    assert done.end.facts.timer.fired_ns is None
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_command_that_cannot_start_is_our_own_failure(tmp_path: Path) -> None:
    done = recorded(tmp_path, "/no/such/program")
    assert done.status is None
    assert done.end.stop is not None
    assert (done.end.stop.cause, done.end.facts.exchange) == (StopCause.RUNNER_FAILED, ExchangeEnd.RAISED)
    assert done.end.facts.wait_gap is not None
    assert done.end.facts.wait_gap.gap is StopGap.NOT_STARTED
    assert done.end.error is not None
    assert (done.end.error.code, done.end.error.stage) == ("command_not_started", "start")
    assert the_record(tmp_path).end == done.end


def test_a_signal_passed_on_is_a_cancel(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    sender = when_there(ready, lambda _: os.kill(os.getpid(), signal.SIGTERM))
    done = shell(tmp_path / "run", f"echo > {ready}; exec sleep 60")
    sender.join()
    assert done.end.status is RecordStatus.CANCELLED
    assert done.end.stop is not None
    assert (done.end.stop.cause, done.end.stop.exit) == (StopCause.UNCLASSIFIED, Signalled(15))
    assert [(one.signal, one.why) for one in done.end.facts.sent] == [(15, "forwarded")]
    assert words(done).startswith("cancelled: SIGTERM came to us and was passed on; it ended with signal 15 (SIGTERM)")


def test_a_daemon_in_its_group_is_named_and_left_alone(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    is_sleep = 'while [ "$(cat /proc/$!/comm)" != sleep ]; do sleep 0.01; done'
    done = shell(tmp_path / "run", f"sleep 600 & {is_sleep}; echo $! > {pid_file}")
    pid = int(pid_file.read_text())
    os.kill(pid, 0)  # it goes on: nobody waited for it
    assert [(one.pid, one.name, one.relation) for one in done.end.facts.left] == [
        (pid, "sleep", "in the command's process group")
    ]
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("how", ["setsid sleep 60 &", "(setsid sh -c 'sleep 60 & echo' &);"])
def test_daemons_of_another_session_stay_in_sight_of_a_subreaper(tmp_path: Path, how: str) -> None:
    script = f"""
import os, sys
from pathlib import Path
from tests.runs.recording import shell
from paritrace.runs.command_watch import Watching
done = shell(Path({str(tmp_path / "run")!r}), {how!r} + " sleep 0.3", watching=Watching(subreaper=True))
assert done.start.subreaper
left = [(one.name, one.relation) for one in done.end.facts.left]
for one in done.end.facts.left:
    os.kill(one.pid, 9)
assert left == [("sleep", "an orphan that we adopted")], left
"""
    child = os.posix_spawn(
        sys.executable, [sys.executable, "-c", script], {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    )
    assert os.waitpid(child, 0)[1] == 0


def test_a_sampled_series_has_its_coverage(tmp_path: Path) -> None:
    done = shell(tmp_path, "sleep 0.5", watching=Watching(sample_seconds=0.1))
    assert done.end.sampled is not None
    assert done.end.sampled.taken >= 2
    assert isinstance(done.end.sampled.sampled_peak_bytes, int)
    assert "sampled_peak" in words(done)


def test_resources_of_an_ended_command_are_a_gap_and_its_cpu_time_is_not(tmp_path: Path) -> None:
    done = shell(tmp_path, "exit 0")
    assert done.end.resources is None
    assert done.end.resources_gap is not None
    assert done.end.resources_gap.gap.value == "host_exited"
    assert isinstance(done.end.waited_cpu_seconds, float)
