"""The table of macOS by a scripted libproc: the calls are right where no Mac is at hand (RS-5, RS-9)."""

import ctypes
import errno
import os

import pytest

from paritrace.evidence.gaps import Gap, ResourceGap, RunGap
from paritrace.process.libproc import BsdInfo, MacTable, RusageInfo
from paritrace.process.table import Gone, HiddenTable, IdentityRule, ProcessRow, Unreadable

ZOMBIE, RUNNING = 5, 2


class ScriptedLibProc:
    """Answers as libproc does; the Mach clock of an Apple processor ticks 24 times a microsecond."""

    def __init__(self) -> None:
        self.infos: dict[int, BsdInfo | OSError] = {}
        self.usages: dict[int, RusageInfo | OSError] = {}
        self.listed: list[int] | OSError = []
        self.capacities: list[int] = []
        self.boot: str | OSError = "0B5C-1"

    def list_children(self, pid: int, capacity: int) -> list[int] | OSError:
        self.capacities.append(capacity)
        return self.listed if isinstance(self.listed, OSError) else self.listed[:capacity]

    def bsd_info(self, pid: int) -> BsdInfo | OSError:
        return self.infos.get(pid, OSError(errno.ESRCH, "No such process"))

    def rusage(self, pid: int) -> RusageInfo | OSError:
        return self.usages.get(pid, OSError(errno.ESRCH, "No such process"))

    def nanoseconds(self, ticks: int) -> int:
        return ticks * 125 // 3

    def boot_session(self) -> str | OSError:
        return self.boot

    def process(self, pid: int, *, status: int = RUNNING) -> None:
        self.infos[pid] = BsdInfo(status=status, pid=pid, ppid=7, start_tvsec=1_700_000_000, start_tvusec=25)
        self.usages[pid] = RusageInfo(
            user_time=24_000_000, system_time=12_000_000, child_user_time=48_000_000, resident_size=4096
        )


def test_rs5_the_structures_have_the_sizes_of_the_headers() -> None:
    assert ctypes.sizeof(BsdInfo) == 136
    assert (BsdInfo.ppid.offset, BsdInfo.status.offset, BsdInfo.start_tvsec.offset) == (16, 4, 120)
    assert ctypes.sizeof(RusageInfo) == 144
    assert (RusageInfo.user_time.offset, RusageInfo.resident_size.offset, RusageInfo.child_user_time.offset) == (
        16,
        64,
        96,
    )


def test_rs5_one_process_in_two_calls() -> None:
    library = ScriptedLibProc()
    library.process(os.getpid())
    assert MacTable(library).row(os.getpid()) == ProcessRow(
        pid=os.getpid(),
        parent=7,
        start=1_700_000_000_000_025,
        session=os.getsid(0),
        zombie=False,
        own_cpu_seconds=1.5,
        waited_cpu_seconds=2.0,
        resident_bytes=4096,
    )


def test_rs9_a_zombie_is_listed_and_its_cpu_counts() -> None:
    library = ScriptedLibProc()
    library.process(42, status=ZOMBIE)
    row = MacTable(library).row(42)
    assert isinstance(row, ProcessRow)
    assert (row.zombie, row.session, row.own_cpu_seconds) == (True, None, 1.5)


def test_rs9_a_process_of_another_user_is_unreadable_by_number() -> None:
    library = ScriptedLibProc()
    table = MacTable(library)
    assert table.row(42) == Gone()
    library.process(42)
    library.usages[42] = OSError(errno.EPERM, "Operation not permitted")
    assert table.row(42) == Unreadable("process 42 of another user cannot be read: Operation not permitted")
    library.listed = OSError(errno.EPERM, "Operation not permitted")
    assert isinstance(table.children(42), Unreadable)
    library.usages[42] = OSError(errno.ESRCH, "No such process")  # it ended between the two calls
    assert table.row(42) == Gone()


def test_rs5_a_list_that_fills_its_place_is_read_again_with_more() -> None:
    library = ScriptedLibProc()
    library.listed = list(range(100, 228))
    assert MacTable(library).children(1) == frozenset(range(100, 228))
    assert library.capacities == [64, 128, 256]


def test_rs5_who_a_process_is() -> None:
    library = ScriptedLibProc()
    library.process(42)
    table = MacTable(library)
    found = table.identity(42)
    assert (found.pid, found.start_ticks, found.boot_id) == (42, 1_700_000_000_000_025, "0B5C-1")
    assert table.identity(43).start_ticks == Gap(RunGap.NO_START_TICKS)
    library.boot = OSError(errno.ENOENT, "")
    assert table.boot_id == Gap(RunGap.NO_BOOT_ID)


def test_rs5_what_macos_does_not_have_is_said() -> None:
    table = MacTable(ScriptedLibProc())
    assert table.rule is IdentityRule.STARTED_BEFORE_LISTING
    assert isinstance(table.parents(), HiddenTable)
    pss = table.pss_bytes(1)
    assert isinstance(pss, Gap)
    assert pss.gap is ResourceGap.UNSUPPORTED_PLATFORM
    assert table.now() > 1_700_000_000_000_000
    assert table.age_seconds(table.now() - 5_000_000_000) == pytest.approx(5000, abs=60)
