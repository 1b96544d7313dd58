"""The process table of Linux, read from /proc (RS-3, RS-4)."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from paritrace.evidence.gaps import Gap, ResourceGap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.process.identity import boot_id, identity_of
from paritrace.process.mounts import hidden_processes
from paritrace.process.stat import Stat, parse_stat
from paritrace.process.table import Gone, HiddenTable, IdentityRule, ProcessRow, Unreadable

PROC = "/proc"
_BLOCK_BYTES = 4096  # the kernel hands out lists of children by the page; a line of stat is shorter
_PSS_PREFIX = b"Pss:"
_KIBIBYTE = 1024


def linux_table(*, proc: str = PROC, signal: Callable[[int, int], None] = os.kill) -> "LinuxTable":
    """The table below `proc`; `signal` asks whether a number that /proc does not show belongs to a process."""
    return LinuxTable(
        proc=proc,
        signal=signal,
        boot_id=boot_id(proc=Path(proc)),
        lists_children=_lists_children(proc),
    )


class LinuxTable:
    """Reads /proc: a process costs a few system calls, however many others the machine has."""

    rule = IdentityRule.PARENT_REREAD

    def __init__(
        self, *, proc: str, signal: Callable[[int, int], None], boot_id: str | Gap[RunGap], lists_children: bool
    ) -> None:
        self._proc = proc
        self._signal = signal
        self._boot_id = boot_id
        self._lists_children = lists_children
        self._tick_seconds = 1 / os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    @property
    def lists_children(self) -> bool:
        """Whether the kernel was built with lists of children."""
        return self._lists_children

    @property
    def boot_id(self) -> str | Gap[RunGap]:
        """A random id that the kernel draws at each boot."""
        return self._boot_id

    def now(self) -> int:
        """Ticks after boot."""
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) / self._tick_seconds)

    def age_seconds(self, start: int) -> float:
        """To the tick."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - start * self._tick_seconds

    def identity(self, pid: int) -> ProcessIdentity:
        """Host, boot, pid namespace, pid and start ticks."""
        return identity_of(pid, proc=Path(self._proc))

    def row(self, pid: int) -> ProcessRow | Gone | Unreadable:
        """Read one process from its stat."""
        stat = self._stat(pid)
        return self._row(pid, stat) if isinstance(stat, Stat) else stat

    def children(self, pid: int) -> frozenset[int] | Gone | Unreadable:
        """List the children of all threads. A thread that ends meanwhile hands its children to one that lives."""
        found: list[bytes] = []
        try:
            threads = os.listdir(f"{self._proc}/{pid}/task")
        except OSError as error:
            return self._failed(pid, error)
        for thread in threads:
            try:
                found += _read(f"{self._proc}/{pid}/task/{thread}/children").split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            except OSError as error:
                return self._failed(pid, error)
        return frozenset(map(int, found))

    def parents(self) -> Mapping[int, int] | Unreadable | HiddenTable:
        """Every process with its parent; where some may be hidden, none."""
        hidden = hidden_processes(self._proc)
        if hidden:
            return HiddenTable(hidden)
        parents: dict[int, int] = {}
        for name in os.listdir(self._proc):
            if name.isdigit():
                stat = self._stat(int(name))
                if isinstance(stat, Unreadable):
                    return stat
                if isinstance(stat, Stat):
                    parents[int(name)] = stat.parent
        return parents

    def pss_bytes(self, pid: int) -> int | Gap[ResourceGap]:
        """Proportional set size from smaps_rollup, which a process of another user does not show."""
        try:
            text = _read(f"{self._proc}/{pid}/smaps_rollup")
        except OSError as error:
            return Gap(ResourceGap.UNREADABLE, f"smaps_rollup of process {pid}: {error.strerror}")
        for line in text.splitlines():
            if line.startswith(_PSS_PREFIX):
                return int(line.split()[1]) * _KIBIBYTE
        return Gap(ResourceGap.UNREADABLE, f"smaps_rollup of process {pid} has no Pss")

    def _row(self, pid: int, stat: Stat) -> ProcessRow:
        lives_on = stat.first_thread_ended and not stat.has_ended  # other threads run
        pages = self._pages_of_threads(pid) if lives_on else stat.resident_pages
        return ProcessRow(
            pid=pid,
            parent=stat.parent,
            start=stat.start_ticks,
            session=stat.session or None,
            zombie=stat.has_ended,
            own_cpu_seconds=stat.own_ticks * self._tick_seconds,
            waited_cpu_seconds=stat.waited_ticks * self._tick_seconds,
            resident_bytes=pages * self._page_bytes,
        )

    def _pages_of_threads(self, pid: int) -> int:
        """Resident pages as a thread that lives shows them; the first thread shows none once it has ended."""
        for thread in os.listdir(f"{self._proc}/{pid}/task"):
            try:
                pages = parse_stat(_read(f"{self._proc}/{pid}/task/{thread}/stat")).resident_pages
            except (OSError, ValueError):
                continue
            if pages:
                return pages
        return 0

    def _stat(self, pid: int) -> Stat | Gone | Unreadable:
        try:
            return parse_stat(_read(f"{self._proc}/{pid}/stat"))
        except OSError as error:
            return self._failed(pid, error)
        except ValueError as error:
            return Unreadable(f"process {pid}: its stat cannot be parsed: {error}")

    def _failed(self, pid: int, error: OSError) -> Gone | Unreadable:
        """What a failed read means: gone only when there is no such process, not when /proc does not show it (RS-4)."""
        if isinstance(error, ProcessLookupError):  # it was there when the file was opened
            return Gone()
        if not isinstance(error, FileNotFoundError):
            return Unreadable(f"process {pid} cannot be read: {error.strerror}")
        try:
            self._signal(pid, 0)
        except ProcessLookupError:
            return Gone()
        except PermissionError:
            pass
        return Unreadable(f"/proc hides process {pid}, which lives")


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(descriptor, _BLOCK_BYTES)
        whole = text
        while text:
            text = os.read(descriptor, _BLOCK_BYTES)
            whole += text
        return whole
    finally:
        os.close(descriptor)


def _lists_children(proc: str) -> bool:
    try:
        with os.scandir(f"{proc}/self/task") as threads:
            return any(os.path.exists(f"{thread.path}/children") for thread in threads)
    except OSError:
        return False
