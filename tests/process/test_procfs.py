"""What /proc says, read from trees of files: gone only when proven, torn lines, hidden processes (RS-3, RS-4, E-09)."""

import errno
import os
from pathlib import Path

import pytest

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.mounts import hidden_processes
from paritrace.process.procfs import LinuxTable, linux_table
from paritrace.process.stat import parse_stat
from paritrace.process.table import Gone, HiddenTable, ProcessRow, Unreadable

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Proc:
    """A /proc of plain files. `alive`: numbers that signal 0 finds though they may not be shown; `foreign` ones with
    a refusal."""

    def __init__(self, root: Path, *, hidepid: str = "", children: bool = True) -> None:
        self.root = root
        self.alive: set[int] = set()
        self.foreign: set[int] = set()
        options = f"rw,hidepid={hidepid}" if hidepid else "rw"
        self.write("self/mountinfo", f"22 27 0:21 / {root} rw,relatime - proc proc {options}\n")
        self.write("sys/kernel/random/boot_id", "boot-1\n")
        self.write("self/ns/pid", "")
        if children:
            self.write("self/task/1/children", "")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def process(self, pid: int, parent: int = 1, *, state: str = "S", name: str = "x", threads: int = 1) -> None:
        fields = [state, parent, pid, 7, 0, -1, 0, 0, 0, 0, 0, 30, 12, 5, 3, 20, 0, threads, 0, 1000 + pid, 9999, 25]
        self.write(f"{pid}/stat", f"{pid} ({name}) " + " ".join(map(str, [*fields, 0, 0])) + "\n")
        self.write(f"{pid}/task/{pid}/children", "")

    def table(self) -> LinuxTable:
        return linux_table(proc=str(self.root), signal=self._signal)

    def _signal(self, pid: int, number: int) -> None:
        assert number == 0
        if pid in self.foreign:
            raise PermissionError
        if pid not in self.alive:
            raise ProcessLookupError


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


@pytest.mark.parametrize("name", ["x", "a b", "a) b", ") S 1 2", "(((", "\n)"])
def test_rs3_stat_is_parsed_after_the_last_parenthesis(proc: Proc, name: str) -> None:
    proc.process(42, 5, name=name)
    assert proc.table().row(42) == ProcessRow(
        pid=42,
        parent=5,
        start=1042,
        session=7,
        zombie=False,
        own_cpu_seconds=42 / TICKS,
        waited_cpu_seconds=8 / TICKS,
        resident_bytes=25 * PAGE,
    )


@pytest.mark.parametrize("text", [b"", b"42 (x", b"42 (x) S 1 2 3", b"42 (x) S " + b"q " * 30])
def test_rs3_a_torn_stat_is_no_row(proc: Proc, text: bytes) -> None:
    proc.process(42)
    (proc.root / "42" / "stat").write_bytes(text)
    found = proc.table().row(42)
    assert isinstance(found, Unreadable)
    assert "42" in found.why
    with pytest.raises(ValueError, match=r"not found|fields|decode|invalid literal"):
        parse_stat(text)


def test_rs1_the_age_of_a_process_in_seconds(proc: Proc) -> None:
    table = proc.table()
    assert table.age_seconds(table.now()) == pytest.approx(0, abs=60)
    assert table.age_seconds(table.now() - 1000 * TICKS) == pytest.approx(1000, abs=60)


def test_rs3_children_of_all_threads(proc: Proc) -> None:
    proc.process(42)
    proc.write("42/task/42/children", "43 44 ")
    proc.write("42/task/50/children", "51 ")
    (proc.root / "42" / "task" / "60").mkdir()  # a thread that ends while the others are read
    assert proc.table().children(42) == frozenset({43, 44, 51})


def test_rs3_a_list_longer_than_a_page_is_read_whole(proc: Proc) -> None:
    proc.process(42)
    pids = range(10_000, 13_000)
    proc.write("42/task/42/children", "".join(f"{pid} " for pid in pids))
    assert proc.table().children(42) == frozenset(pids)


def test_rs4_a_missing_entry_is_gone_only_when_signal_0_says_so(proc: Proc) -> None:
    table = proc.table()
    assert table.row(42) == table.children(42) == Gone()
    proc.alive.add(42)
    assert table.row(42) == table.children(42) == Unreadable("/proc hides process 42, which lives")
    proc.foreign.add(42)
    assert table.row(42) == Unreadable("/proc hides process 42, which lives")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE])
def test_rs4_what_may_not_be_read_lives(proc: Proc, number: int) -> None:
    found = proc.table()._failed(42, OSError(number, os.strerror(number)))
    assert found == Unreadable(f"process 42 cannot be read: {os.strerror(number)}")


def test_rs4_a_process_that_ended_between_opening_and_reading_is_gone(proc: Proc) -> None:
    assert proc.table()._failed(42, OSError(errno.ESRCH, "")) == Gone()


def test_rs3_a_zombie_and_one_whose_first_thread_alone_has_ended(proc: Proc) -> None:
    proc.process(42, state="Z")
    proc.process(43, state="Z", threads=3)
    proc.process(99)
    proc.write("43/task/43/stat", (proc.root / "42/stat").read_text().replace(" 25 0 0", " 0 0 0"))
    proc.write("43/task/99/stat", (proc.root / "99/stat").read_text())
    table = proc.table()
    rows = [table.row(42), table.row(43)]
    assert [row.zombie for row in rows if isinstance(row, ProcessRow)] == [True, False]
    assert isinstance(rows[1], ProcessRow)
    assert rows[1].resident_bytes == 25 * PAGE


def test_rs4_a_kernel_without_lists_is_scanned(tmp_path: Path) -> None:
    proc = Proc(tmp_path, children=False)
    proc.process(42, 1)
    proc.process(43, 42)
    table = proc.table()
    assert not table.lists_children
    assert table.parents() == {42: 1, 43: 42}
    assert Proc(tmp_path).table().lists_children


@pytest.mark.parametrize("value", ["invisible", "ptraceable", "2", "4"])
def test_e09_a_scan_is_refused_where_numbers_may_be_hidden(tmp_path: Path, value: str) -> None:
    proc = Proc(tmp_path, hidepid=value)
    proc.process(42)
    assert proc.table().parents() == HiddenTable(f"{tmp_path} is mounted with hidepid={value}")


@pytest.mark.parametrize("value", ["", "off", "0", "noaccess", "1"])
def test_rs10_under_noaccess_all_are_listed(tmp_path: Path, value: str) -> None:
    assert hidden_processes(str(Proc(tmp_path, hidepid=value).root)) == ""


def test_rs4_the_last_mount_over_proc_counts(proc: Proc) -> None:
    over = (
        f"22 27 0:21 / {proc.root} rw shared:3 - proc proc rw,hidepid=2\n23 22 0:22 / {proc.root} rw - proc proc rw\n"
    )
    proc.write("self/mountinfo", over)
    assert hidden_processes(str(proc.root)) == ""


@pytest.mark.parametrize("text", ["", "not a line\n", "1 2 0:1 / /elsewhere rw - proc proc rw\n"])
def test_rs4_what_is_not_known_may_hide_some(proc: Proc, text: str) -> None:
    proc.write("self/mountinfo", text)
    assert hidden_processes(str(proc.root)) != ""


def test_rs4_a_mount_point_with_blanks(tmp_path: Path) -> None:
    root = tmp_path / "a b"
    proc = Proc(root)
    proc.write(
        "self/mountinfo", f"22 27 0:21 / {str(root).replace(' ', chr(92) + '040')} rw - proc proc rw,hidepid=2\n"
    )
    assert hidden_processes(str(root)) == f"{root} is mounted with hidepid=2"


def test_rs1_pss_or_why_not(proc: Proc) -> None:
    proc.write("42/smaps_rollup", "00-ff ---p 0 00:00 0 [rollup]\nRss: 9 kB\nPss:      3 kB\nPss_Dirty: 1 kB\n")
    table = proc.table()
    assert table.pss_bytes(42) == 3072
    missing = table.pss_bytes(43)
    assert isinstance(missing, Gap)
    assert missing.gap is ResourceGap.UNREADABLE
    proc.write("42/smaps_rollup", "Rss: 9 kB\n")
    assert table.pss_bytes(42) == Gap(ResourceGap.UNREADABLE, "smaps_rollup of process 42 has no Pss")
