"""Real process trees: zombies, threads, sessions, double forks, shared memory, SIGKILL at any time (RS-1, SC-3)."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.kernel_calls import become_subreaper, is_subreaper
from paritrace.process.observing import TreeObserver, observed_host, this_machine
from paritrace.process.resources import ResourceSnapshot
from tests.process.hosts import host, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these trees are read from /proc, which Linux has")

READY = "import os, signal, sys, time\nsay = lambda what=0: (sys.stdout.write(f'{what}\\n'), sys.stdout.flush())\n"
TICKED = 0.07  # of 0.1 s: the kernel shows user and system time in whole ticks, cut off
SLEEP = "\nsignal.pause()\n"


def observer(pid: int, *, pss: bool = False, lineage: bool = False, adopts: bool = False) -> TreeObserver:
    table = this_machine()
    host = observed_host(table, pid, subject="test")
    return TreeObserver(table, host, pss=pss, lineage=lineage, adopter=pid if adopts else None)


def number(value: int | float | Gap[ResourceGap]) -> float:
    assert not isinstance(value, Gap), value
    return value


def test_rs1_our_own_figures() -> None:
    found = observer(os.getpid(), pss=True).snapshot()
    assert number(found.process_count) >= 1
    assert number(found.resident_memory_bytes) > number(found.pss_bytes) > 1 << 20
    assert number(found.cpu_time_seconds) > 0


def test_rs3_a_zombie_counts_its_cpu_and_is_not_live() -> None:
    burn = "\nif os.fork() == 0:\n    while time.process_time() < 0.1: pass\n    os._exit(0)\n"
    waited = burn + "os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)\nsay()"
    with host(READY + waited + SLEEP) as process:
        found = observer(process.pid).snapshot()
        assert found.process_count == 1
        assert number(found.cpu_time_seconds) >= TICKED


def test_rs1_the_cpu_of_descendants_that_were_waited_for_counts() -> None:
    burn = "\nif os.fork() == 0:\n    while time.process_time() < 0.1: pass\n    os._exit(0)\nos.wait()\nsay()"
    with host(READY + burn + SLEEP) as process:
        found = observer(process.pid).snapshot()
        assert found.process_count == 1
        assert number(found.cpu_time_seconds) >= TICKED


def test_rs3_a_child_of_another_thread_is_found() -> None:
    start = (
        "import threading\n"
        "def other():\n    pid = os.fork()\n    (signal.pause if pid == 0 else say)()\n    signal.pause()\n"
        "threading.Thread(target=other).start()"
    )
    with host(READY + start + SLEEP) as process:
        assert observer(process.pid).snapshot().process_count == 2


def test_rs3_a_process_whose_first_thread_has_ended_lives_and_holds_memory() -> None:
    start = (
        "import ctypes, threading\n"
        "def other():\n    time.sleep(3600)\n"
        "threading.Thread(target=other).start()\n"
        "say()\nctypes.CDLL(None).pthread_exit(None)"
    )
    with host(READY + start) as process:
        until(lambda: " Z " in Path(f"/proc/{process.pid}/stat").read_text())
        found = observer(process.pid).snapshot()
        assert found.process_count == 1
        assert number(found.resident_memory_bytes) > 1 << 20


DAEMON = (
    "\nread, write = os.pipe()\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n    if os.fork(): os._exit(0)\n"  # twice, as daemons do
    "    os.close(write)\n    os.read(read, 1)\n    os._exit(0)\n"  # it ends with the host
    "os.wait()\nsay()"
)


def test_rs6_a_double_forked_daemon_leaves_the_tree() -> None:
    with host(READY + DAEMON + SLEEP) as process:
        found = observer(process.pid, lineage=True).snapshot()
        assert (found.process_count, found.subreaper, found.reparented) == (1, False, ())


def test_rs6_it_stays_below_a_host_that_adopts_orphans_and_is_named() -> None:
    with host(READY + DAEMON + SLEEP, adopt=become_subreaper) as process:
        found = observer(process.pid, lineage=True, adopts=True).snapshot()
        assert (found.process_count, found.subreaper) == (2, True)
        assert isinstance(found.reparented, tuple)
        assert len(found.reparented) == 1
        assert found.other_session == found.reparented
        os.kill(found.reparented[0], signal.SIGKILL)
    assert not is_subreaper()


def test_rs6_a_child_that_leaves_the_session_is_named() -> None:
    start = (
        "\nread, write = os.pipe()\n"
        "if os.fork() == 0:\n    os.setsid(); os.write(write, b'x'); signal.pause()\n"
        "os.read(read, 1)\nsay()"
    )
    with host(READY + start + SLEEP) as process:
        found = observer(process.pid, lineage=True).snapshot()
        assert found.process_count == 2
        assert isinstance(found.other_session, tuple)
        assert len(found.other_session) == 1
        assert found.reparented == ()
        os.kill(found.other_session[0], signal.SIGKILL)


def test_e13_resident_memory_counts_shared_pages_per_process_and_pss_does_not() -> None:
    start = "\nheld = b'x' * (24 << 20)\nfor _ in range(10):\n    if os.fork() == 0: signal.pause()\nsay()"
    with host(READY + start + SLEEP) as process:
        found = observer(process.pid, pss=True).snapshot()
        assert found.process_count == 11
        assert number(found.resident_memory_bytes) > 11 * (24 << 20)
        assert number(found.pss_bytes) < number(found.resident_memory_bytes) / 3


def test_sc3_a_host_that_is_killed_at_any_time_gives_a_snapshot_or_a_gap() -> None:
    spawn = "\nsay()\nwhile True:\n    if os.fork() == 0: os._exit(0)\n    os.wait()\n"
    with host(READY + spawn) as process:
        watching = observer(process.pid)
        killer = threading.Timer(0.1, process.kill)
        killer.start()
        found = watching.final()
        while not (isinstance(found, Gap) and found.gap is ResourceGap.HOST_EXITED):
            if isinstance(found, ResourceSnapshot):
                assert found.process_count in (1, 2)
            else:
                assert found.gap is ResourceGap.TREE_CHANGED, found
            found = watching.final()
        killer.join()
    assert found.detail == f"process {process.pid} has ended"
