"""A process is told apart by host, boot, container, pid and start; gone only when that is proven (EV-3, EV-17)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.process.identity import Life, identity_of, liveness, own_identity


def test_we_are_alive_and_know_ourselves() -> None:
    me = own_identity()
    assert me.pid == os.getpid()
    assert isinstance(me.start_ticks, int)
    assert isinstance(me.boot_id, str)
    assert liveness(me).life is Life.ALIVE
    assert own_identity() == me


def test_an_ended_process_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = identity_of(child.pid)
    assert liveness(identity).life is Life.ALIVE
    child.communicate(b"\n", timeout=60)
    assert liveness(identity).life is Life.GONE


def test_a_process_whose_status_nobody_has_taken_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    identity = identity_of(child.pid)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    assert child.stdout.read() == b""  # its other end is closed: it ends
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    found = liveness(identity)
    assert (found.life, "nobody has taken" in found.why) == (Life.GONE, True)
    child.wait(timeout=60)
    assert liveness(identity).life is Life.GONE


def test_a_pid_that_belongs_to_another_process_now_is_gone() -> None:
    found = liveness(replace(own_identity(), start_ticks=1))
    assert found.life is Life.GONE
    assert "belongs to another one" in found.why


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"host": "elsewhere"}, "runs on host elsewhere"),
        ({"boot_id": "other"}, "has booted since"),
        ({"boot_id": Gap(RunGap.NO_BOOT_ID)}, "shows no boot id"),
        ({"pid_namespace": "pid:[1]"}, "another container"),
        ({"pid_namespace": Gap(RunGap.NO_PID_NAMESPACE)}, "another container"),
        ({"start_ticks": Gap(RunGap.NO_START_TICKS)}, "shows no start time"),
    ],
)
def test_what_cannot_be_told_from_here_is_not_checkable(change: dict[str, object], why: str) -> None:
    found = liveness(replace(own_identity(), **change))
    assert found.life is Life.NOT_CHECKABLE
    assert why in found.why


def test_a_name_with_spaces_and_parentheses_does_not_confuse_the_start_time(tmp_path: Path) -> None:
    folder = tmp_path / "42"
    folder.mkdir()
    fields = " ".join(str(number) for number in range(4, 53))
    (folder / "stat").write_text(f"42 (a) b (c) S {fields}")
    assert identity_of(42, proc=tmp_path).start_ticks == 22


def test_a_host_without_proc_gives_gaps(tmp_path: Path) -> None:
    found = identity_of(42, proc=tmp_path)
    assert found == ProcessIdentity(
        host=found.host,
        boot_id=Gap(RunGap.NO_BOOT_ID),
        pid_namespace=Gap(RunGap.NO_PID_NAMESPACE),
        pid=42,
        start_ticks=Gap(RunGap.NO_START_TICKS),
    )
