"""Drills that need root and namespaces of their own: run as a program with a drill's name, prints what was found.

`test_root_drills.py` runs it by `unshare`, below a /proc of its own, so that nothing outside is touched.
"""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from paritrace.evidence.gaps import Gap
from paritrace.process.observing import TreeObserver, observed_host
from paritrace.process.procfs import LinuxTable, linux_table
from paritrace.process.table import Gone, ProcessRow, Unreadable

USER, OTHER_USER = 65534, 65533
WAIT_SECONDS = 60.0
MANY = 5000
CROWD = f"""
import os, signal
for _ in range({MANY}):
    if os.fork() == 0:
        signal.pause()
print(flush=True)
signal.pause()
"""


def sleeper(then: Callable[[], object] = signal.pause) -> int:
    """Fork a child that does something, then waits for its end."""
    pid = os.fork()
    if pid == 0:
        then()
        signal.pause()
    return pid


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def next_pid(pid: int) -> None:
    """Have the kernel give this number to the next process of our pid namespace."""
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))


def watch(pid: int, table: LinuxTable) -> TreeObserver:
    return TreeObserver(table, observed_host(table, pid, subject="drill"))


def found(watching: TreeObserver) -> str:
    seen = watching.final()
    return f"{seen.gap}: {seen.detail}" if isinstance(seen, Gap) else f"{seen.process_count} processes"


def later_start() -> None:
    """Let two clock ticks pass: a process that starts in the same one has the same start time."""
    time.sleep(3 / os.sysconf("SC_CLK_TCK"))


def reused_host() -> str:
    """The host ends and its number goes to a stranger with a child."""
    host = sleeper()
    watching = watch(host, linux_table())
    before = found(watching)
    end(host)
    later_start()
    next_pid(host)
    assert sleeper(sleeper) == host
    return f"{before}; {found(watching)}"


class Raced(LinuxTable):
    """The real table, in which something happens before one read of one process."""

    before: tuple[int, Callable[[], None]] | None = None

    def row(self, pid: int) -> ProcessRow | Gone | Unreadable:
        if self.before is not None and self.before[0] == pid:
            do, self.before = self.before[1], None
            do()
        return super().row(pid)


def reused_family() -> str:
    """Parent and child both end while the tree is read, and both numbers go to strangers of the same shape (E-08)."""
    read, write = os.pipe()

    def parent() -> None:
        os.write(write, b"%08d" % sleeper())

    def host() -> None:
        os.write(write, b"%08d" % sleeper(parent))
        os.wait()

    top = sleeper(host)
    numbers = sorted([int(os.read(read, 8)), int(os.read(read, 8))])
    middle, below = numbers
    calm = linux_table()
    table = Raced(proc="/proc", signal=os.kill, boot_id=calm.boot_id, lists_children=True)
    watching = watch(top, table)
    before = found(watching)

    def stranger() -> None:
        next_pid(below)
        parent()

    def reuse() -> None:
        os.kill(middle, signal.SIGKILL)
        os.kill(below, signal.SIGKILL)
        until_gone(middle, below)
        later_start()
        next_pid(middle)
        assert sleeper(stranger) == middle
        assert int(os.read(read, 8)) == below

    table.before = (below, reuse)
    return f"{before}; {found(watching)}"


def until_gone(*pids: int) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until
        reap()  # orphans are ours: we are the first process of the namespace
        time.sleep(0.01)


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def two_users() -> "subprocess.Popen[bytes]":
    """A host of one user with a child of another."""
    asleep = "setpriv --reuid={0} --regid={0} --clear-groups sleep 3600"
    script = f"{asleep.format(OTHER_USER)} & exec {asleep.format(USER)}"
    process = subprocess.Popen(["sh", "-c", script])
    until = time.monotonic() + WAIT_SECONDS
    while len(sleepers()) < 2:
        assert time.monotonic() < until
        time.sleep(0.01)
    return process


def sleepers() -> list[str]:
    names = (Path(f"/proc/{name}/comm") for name in os.listdir("/proc") if name.isdigit())
    return [text for text in (path.read_text() for path in names if path.exists()) if text == "sleep\n"]


def as_user(look: Callable[[], str]) -> str:
    """What the user of the host finds."""
    found(watch(os.getpid(), linux_table()))  # what is loaded late is loaded now: the user may not read our files
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(USER)  # hidepid hides nothing from group 0
            os.setuid(USER)
            os.write(write, look().encode())
        except BaseException:  # noqa: BLE001  the parent shows it
            os.write(write, traceback.format_exc().encode())
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    return os.read(read, 1 << 16).decode()


def other_user() -> str:
    """Another user's child: its memory is readable, its proportional memory is not."""
    process = two_users()

    def look() -> str:
        table = linux_table()
        seen = TreeObserver(table, observed_host(table, process.pid, subject="drill"), pss=True).snapshot()
        assert isinstance(seen.pss_bytes, Gap)
        return f"{seen.process_count} processes, pss {seen.pss_bytes.gap}"

    return as_user(look)


def hidden(option: str, *, lists_children: bool) -> str:
    process = two_users()
    subprocess.run(["mount", "-t", "proc", "-o", f"hidepid={option}", "proc", "/proc"], check=True)

    def look() -> str:
        table = linux_table()
        if not lists_children:
            table = LinuxTable(proc="/proc", signal=os.kill, boot_id=table.boot_id, lists_children=False)
        return found(watch(process.pid, table))

    return as_user(look)


class Counted(LinuxTable):
    """The real table, counting its reads."""

    reads = 0

    def row(self, pid: int) -> ProcessRow | Gone | Unreadable:
        self.reads += 1
        return super().row(pid)

    def children(self, pid: int) -> frozenset[int] | Gone | Unreadable:
        self.reads += 1
        return super().children(pid)

    def parents(self) -> dict[int, int]:
        raise AssertionError("a scan of the machine")


def many() -> str:
    """5,000 processes that are not ours: a snapshot reads as much as without them (RS-4)."""
    host = sleeper(sleeper)
    calm = linux_table()
    table = Counted(proc="/proc", signal=os.kill, boot_id=calm.boot_id, lists_children=calm.lists_children)
    watching = watch(host, table)
    until = time.monotonic() + WAIT_SECONDS
    while found(watching) != "2 processes":
        assert time.monotonic() < until
    table.reads = 0
    alone = found(watching), table.reads
    strangers = subprocess.Popen([sys.executable, "-S", "-E", "-c", CROWD], stdout=subprocess.PIPE)
    assert strangers.stdout is not None
    strangers.stdout.readline()
    table.reads = 0
    among_many = found(watching), table.reads
    crowd = found(watch(strangers.pid, calm))  # its list of children is many pages long
    return f"{alone[0]}; {among_many[0]}; as many reads: {alone[1] == among_many[1] > 0}; {crowd}"


DRILLS: dict[str, Callable[[], str]] = {
    "reused_host": reused_host,
    "reused_family": reused_family,
    "other_user": other_user,
    "hidepid_invisible": lambda: hidden("2", lists_children=True),
    "hidepid_noaccess": lambda: hidden("1", lists_children=True),
    "hidepid_invisible_scan": lambda: hidden("2", lists_children=False),
    "hidepid_noaccess_scan": lambda: hidden("1", lists_children=False),
    "many": many,
}

if __name__ == "__main__":
    sys.stdout.write(DRILLS[sys.argv[1]]())
    sys.stdout.flush()
    os.kill(-1, signal.SIGKILL)  # all of the namespace but us
