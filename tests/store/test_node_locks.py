"""Locks of a node: dead holders, stopped holders, replaced files, forks, another machine's (ST-16, ST-8a, EV-11)."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from paritrace.clock import rfc3339
from paritrace.errors import HostError
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import LOCAL
from paritrace.files.holders import holders_of
from paritrace.process.identity import own_identity
from paritrace.store.node_locks import node_lock, rank_lock
from paritrace.testing.clocks import ManualClock
from tests.store.targets.places import Appearing

OWNER = ProcessIdentity("host-a", "boot-a", "pid:[1]", 7, 70)
HOLDER = """
import sys, time
from pathlib import Path
from paritrace.process.identity import own_identity
from paritrace.store.node_locks import rank_lock
with rank_lock(Path(sys.argv[1]), 0, owner=own_identity()):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def holder(folder: Path) -> Generator[int, None, None]:
    """The pid of another process that holds the lock of rank 0."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"held\n"
            yield child.pid
        finally:
            child.kill()


def refused(folder: Path, owner: ProcessIdentity = OWNER) -> str:
    with pytest.raises(HostError) as caught, rank_lock(folder, 0, owner=owner, clock=ManualClock()):
        pass
    return caught.value.code


def test_two_ranks_have_locks_of_their_own_and_a_node_one(tmp_path: Path) -> None:
    with rank_lock(tmp_path, 0, owner=OWNER), rank_lock(tmp_path, 1, owner=OWNER), node_lock(tmp_path, owner=OWNER):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["node.lock", "rank-0.lock", "rank-1.lock"]


def test_a_second_holder_waits_until_its_deadline_and_is_told(tmp_path: Path) -> None:
    with rank_lock(tmp_path, 0, owner=OWNER):
        assert refused(tmp_path) == "lock_timeout"
    with rank_lock(tmp_path, 0, owner=OWNER):
        pass


def test_the_deadline_does_not_move_with_the_wall_clock(tmp_path: Path) -> None:
    clock = ManualClock()
    clock.step_wall(-(10 * 365 * 86_400 * 10**9))
    with (
        rank_lock(tmp_path, 0, owner=OWNER),
        pytest.raises(HostError),
        rank_lock(tmp_path, 0, owner=OWNER, clock=clock),
    ):
        pass
    assert 59.0 <= sum(clock.slept_seconds) <= 61.0


def test_the_lock_file_is_never_removed_and_is_empty_when_let_go(tmp_path: Path) -> None:
    with rank_lock(tmp_path, 0, owner=OWNER):
        assert msgspec.json.decode((tmp_path / "rank-0.lock").read_bytes(), type=ProcessIdentity) == OWNER
    assert (tmp_path / "rank-0.lock").read_bytes() == b""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_dead_holder_is_followed_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with holder(tmp_path) as pid:
        os.kill(pid, number)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert (tmp_path / "rank-0.lock").read_bytes()
        with rank_lock(tmp_path, 0, owner=own_identity(), wait_seconds=0.0):
            pass


@pytest.mark.slow
def test_a_stopped_holder_keeps_it_and_the_deadline_holds(tmp_path: Path) -> None:
    with holder(tmp_path) as pid:
        os.kill(pid, signal.SIGSTOP)
        assert refused(tmp_path, own_identity()) == "lock_timeout"


def test_a_lock_left_by_another_machine_is_not_checkable(tmp_path: Path) -> None:
    other = ProcessIdentity("host-b", "boot-b", "pid:[1]", 7, 70)
    (tmp_path / "rank-0.lock").write_bytes(msgspec.json.encode(other))
    assert refused(tmp_path) == "lock_of_another_host"
    assert msgspec.json.decode((tmp_path / "rank-0.lock").read_bytes(), type=ProcessIdentity) == other


@pytest.mark.parametrize("mark", [b"", b'{"host":"host-', b"\xff\xfe", b"x" * 10_000, b"[]"])
def test_a_mark_that_was_cut_off_is_no_owner(tmp_path: Path, mark: bytes) -> None:
    (tmp_path / "rank-0.lock").write_bytes(mark)
    with rank_lock(tmp_path, 0, owner=OWNER):
        pass


@pytest.mark.parametrize(
    "other",
    [
        ProcessIdentity("host-a", "boot-before", "pid:[1]", 7, 70),  # this machine has booted since
        ProcessIdentity("container-b", "boot-a", "pid:[2]", 7, 70),  # another container of this machine
    ],
)
def test_a_lock_left_on_this_machine_is_the_kernels_to_give(tmp_path: Path, other: ProcessIdentity) -> None:
    (tmp_path / "rank-0.lock").write_bytes(msgspec.json.encode(other))
    with rank_lock(tmp_path, 0, owner=OWNER):
        pass


def test_a_lock_file_that_was_replaced_while_we_waited_is_not_taken_for_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.lock"
    with ExitStack() as stack:
        stack.enter_context(rank_lock(tmp_path, 0, owner=OWNER))
        old = path.stat().st_ino

        def replaced() -> None:
            path.rename(tmp_path / "old")
            path.write_bytes(b"")
            stack.close()

        with rank_lock(tmp_path, 0, owner=OWNER, clock=Appearing(replaced)):
            assert path.stat().st_ino != old
            assert path.read_bytes()
            assert refused(tmp_path) == "lock_timeout"


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with rank_lock(tmp_path, 0, owner=OWNER):
        child = os.fork()
        if child == 0:  # lives until the pipe is closed
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
    os.close(reader)
    try:
        with rank_lock(tmp_path, 0, owner=OWNER, wait_seconds=0.0):
            pass
    finally:
        os.close(writer)
        os.waitpid(child, 0)


def told_timeout(folder: Path, owner: ProcessIdentity) -> HostError:
    with pytest.raises(HostError) as caught, rank_lock(folder, 0, owner=owner, clock=ManualClock()):
        pass
    assert caught.value.code == "lock_timeout"
    return caught.value


@pytest.mark.slow
def test_st7_a_lock_timeout_names_pid_host_boot_time_and_command(tmp_path: Path) -> None:
    with holder(tmp_path) as pid:
        error = told_timeout(tmp_path, own_identity())
        here = own_identity()
        since = rfc3339((tmp_path / "rank-0.lock").stat().st_mtime_ns)
        assert f"by process {pid} of {here.host} (boot {here.boot_id}) since {since}" in error.message
        if not Path("/proc/locks").read_text():  # gVisor and other kernels show none
            pytest.skip("this kernel shows no locks, so the command of the holder is not known")
        assert error.message.partition(since)[2].startswith(f": {sys.executable} -c")
        assert "let that process end" in error.fix


def test_st7_a_holder_without_a_readable_mark_is_told_as_far_as_the_kernel_shows_it(tmp_path: Path) -> None:
    with rank_lock(tmp_path, 0, owner=OWNER):
        (tmp_path / "rank-0.lock").write_bytes(b'{"host":"ho')
        error = told_timeout(tmp_path, OWNER)
    shown = holders_of((tmp_path / "rank-0.lock").stat())
    assert shown == ()  # let go
    if f"by process {os.getpid()}: " not in error.message:
        assert "fuser" in error.fix


def test_st7_a_lock_of_the_kernel_without_any_mark_names_its_process(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with LOCAL.locked(path):
        seen = holders_of(path.stat())
        with pytest.raises(HostError) as caught, LOCAL.locked(path, wait_seconds=0.0):
            pass
    assert seen in ((os.getpid(),), ())
    assert (f"by process {os.getpid()}: " in caught.value.message) is bool(seen)
