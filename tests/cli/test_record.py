"""`paritrace record` as a program: streams, status, the run it leaves, real memory kills (SC-2, SC-3, E-01, E-11)."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.evidence.gaps import Gap
from paritrace.process.cgroups import Cgroups
from paritrace.process.own_cgroup import OwnCgroup, make_cgroup
from paritrace.process.stop_facts import StopCause, StopReason, VictimSource
from paritrace.runs.record_reading import RecordState
from tests.runs.recording import the_record

DEADLINE_SECONDS = 240
ALLOCATE = "x = bytearray(1)\nwhile True: x += bytes(1 << 20)"


def record(root: Path, *arguments: str, **more: object) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "paritrace", "record", "-o", str(root), *arguments]
    return subprocess.run(command, capture_output=True, timeout=DEADLINE_SECONDS, check=False, **more)  # type: ignore[call-overload,no-any-return]


def test_streams_and_status_pass_through_unchanged(tmp_path: Path) -> None:
    script = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d[::-1]); sys.exit(7)"
    given = bytes(range(256)) * 100
    done = record(tmp_path / "run", "--", sys.executable, "-S", "-c", script, input=given)
    assert (done.returncode, done.stdout) == (7, given[::-1])
    assert b"command_failed, exit code 7" in done.stderr
    assert the_record(tmp_path / "run").state is RecordState.COMPLETE


def test_json_is_the_last_line_behind_the_commands_output(tmp_path: Path) -> None:
    done = record(tmp_path / "run", "--json", "--", "echo", "own")
    own, last = done.stdout.splitlines()
    assert own == b"own"
    assert (json.loads(last)["line"], json.loads(last)["stop"]) == ("end", None)


def test_our_failures_are_125(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("x")
    assert record(tmp_path / "taken", "--", "true").returncode == 125
    assert record(tmp_path / "a", "--timeout", "-1", "--", "true").returncode == 125
    missing = record(tmp_path / "b", "--", "no-such-program")
    assert missing.returncode == 125
    assert b"command_not_started" in missing.stderr
    assert the_record(tmp_path / "b").end is not None


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e12", "0"])
def test_a_time_that_no_timer_takes_is_refused_before_anything_starts(tmp_path: Path, seconds: str) -> None:
    done = record(tmp_path / "run", "--timeout", seconds, "--", "touch", str(tmp_path / "began"))
    assert done.returncode == 125
    assert b"[usage]" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_status_is_the_commands_where_our_own_words_find_no_place(tmp_path: Path) -> None:
    """SC-2: `/dev/full` takes nothing; a closed descriptor is none."""
    own = [sys.executable, "-m", "paritrace", "record", "--json"]
    for number, where in enumerate((">/dev/full", "2>/dev/full", ">&-", "2>&-", "| true; exit ${PIPESTATUS[0]}")):
        line = f'"$@" -o {tmp_path / str(number)} -- sh -c "exit 6" {where}'
        done = subprocess.run(
            ["bash", "-c", line, "bash", *own], capture_output=True, timeout=DEADLINE_SECONDS, check=False
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (6, False), where
        assert the_record(tmp_path / str(number)).state is RecordState.COMPLETE


def test_rr_4_a_record_that_was_not_written_is_not_called_recorded(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = record(tmp_path / "file" / "run", "--", "true")
    assert done.returncode == 0
    assert b"no whole record was written to" in done.stderr
    assert b"recorded ->" not in done.stderr
    assert done.stderr.count(b"[not_a_folder]") == 1


@pytest.mark.slow
def test_a_descendant_that_holds_the_pipe_is_named_and_hangs_nobody_but_its_reader(tmp_path: Path) -> None:
    read, write = os.pipe()
    command = [sys.executable, "-m", "paritrace", "record", "-o", str(tmp_path), "--timeout", "60", "--"]
    process = subprocess.Popen(
        [*command, "sh", "-c", "setsid sleep 300 2>/dev/null & echo $!"], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    _, told = process.communicate(timeout=DEADLINE_SECONDS)
    pid = int(os.read(read, 100))
    os.kill(pid, signal.SIGKILL)
    assert process.returncode == 0
    end = the_record(tmp_path).end
    assert end is not None
    assert [(one.pid, one.holds) for one in end.facts.left] == [(pid, ("standard output",))]
    assert f"process {pid} (sleep)" in told.decode()


def limited(name: str) -> OwnCgroup:
    """A memory cgroup of 64 MiB, or a skip with the reason why there is none."""
    scope = Cgroups().scope_of(os.getpid())
    if isinstance(scope, Gap):
        pytest.skip(f"no memory cgroup here: {scope.gap.value} {scope.detail or ''}")
    made = make_cgroup(scope, name=name)
    if isinstance(made, Gap):
        pytest.skip(f"no cgroup may be made here: {made.gap.value} {made.detail or ''}")
    made.limit_memory(64 << 20)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "command", "cause", "status"),
    [
        (("--cgroup",), (sys.executable, "-S", "-c", ALLOCATE), StopCause.SANDBOX_FAILED, 137),
        (("--cgroup",), ("sh", "-c", f"{sys.executable} -S -c '{ALLOCATE}'; exit 1"), StopCause.SANDBOX_FAILED, 1),
        ((), ("sh", "-c", f"{sys.executable} -S -c '{ALLOCATE}'; exit 1"), StopCause.COMMAND_FAILED, 1),
    ],
    ids=["the command itself", "a tool of it", "a scope that is not ours alone"],
)
def test_a_real_memory_kill(
    tmp_path: Path, options: tuple[str, ...], command: tuple[str, ...], cause: StopCause, status: int
) -> None:
    outer = limited(f"paritrace-test-{os.getpid()}-{abs(hash((options, command))) % 10**8}")
    try:
        done = record(tmp_path / "run", *options, "--", *command, preexec_fn=outer.join)
    finally:
        left = outer.remove()
    assert left is None
    assert done.returncode == status
    end = the_record(tmp_path / "run").end
    assert end is not None
    assert end.stop is not None
    assert end.stop.cause is cause
    assert [one.after.oom_kill - one.before.oom_kill for one in end.facts.rises] == [1]
    assert any(one.source in (VictimSource.KERNEL_LOG, VictimSource.REAPED) for one in end.facts.victims)
    if cause is StopCause.SANDBOX_FAILED:
        assert end.stop.reason is StopReason.OUT_OF_MEMORY
        assert b"exclusive: verified" in done.stderr
    else:
        assert end.stop.oom_in_scope == "scope_not_exclusive (unknown)"
