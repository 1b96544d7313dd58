"""The process table of macOS, read through libproc and ctypes (RS-5, RS-9).

The structures are those of <sys/proc_info.h> and <sys/resource.h> of XNU. A descendant of another user, setuid programs
such as `ps` and `sudo` among them, cannot be read and makes a snapshot unavailable.
"""

import ctypes
import errno
import os
import time
from collections.abc import Mapping
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_int, c_int32, c_size_t, c_uint8, c_uint32, c_uint64
from typing import Protocol

from paritrace.evidence.gaps import Gap, ResourceGap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.process.table import Gone, HiddenTable, IdentityRule, ProcessRow, Unreadable

_PIDTBSDINFO = 3
_WITH_ZOMBIES = 1
_RUSAGE_INFO_V1 = 1
_SZOMB = 5
_FIRST_CAPACITY = 64
_MICROSECONDS = 1_000_000


class BsdInfo(Structure):
    """`struct proc_bsdinfo`."""

    _fields_ = (
        ("flags", c_uint32),
        ("status", c_uint32),
        ("xstatus", c_uint32),
        ("pid", c_uint32),
        ("ppid", c_uint32),
        ("ids", c_uint32 * 7),
        ("comm", c_char * 16),
        ("name", c_char * 32),
        ("nfiles", c_uint32),
        ("pgid", c_uint32),
        ("pjobc", c_uint32),
        ("tdev", c_uint32),
        ("tpgid", c_uint32),
        ("nice", c_int32),
        ("start_tvsec", c_uint64),
        ("start_tvusec", c_uint64),
    )


class RusageInfo(Structure):
    """`struct rusage_info_v1`; times in ticks of the Mach clock."""

    _fields_ = (
        ("uuid", c_uint8 * 16),
        ("user_time", c_uint64),
        ("system_time", c_uint64),
        ("pkg_idle_wkups", c_uint64),
        ("interrupt_wkups", c_uint64),
        ("pageins", c_uint64),
        ("wired_size", c_uint64),
        ("resident_size", c_uint64),
        ("phys_footprint", c_uint64),
        ("proc_start_abstime", c_uint64),
        ("proc_exit_abstime", c_uint64),
        ("child_user_time", c_uint64),
        ("child_system_time", c_uint64),
        ("child_pkg_idle_wkups", c_uint64),
        ("child_interrupt_wkups", c_uint64),
        ("child_pageins", c_uint64),
        ("child_elapsed_abstime", c_uint64),
    )


class Timebase(Structure):
    """`struct mach_timebase_info`: nanoseconds = ticks * numer / denom."""

    _fields_ = (("numer", c_uint32), ("denom", c_uint32))


class LibProc(Protocol):
    """The calls that are made, each with the errno it left; a faulty one is passed in tests."""

    def list_children(self, pid: int, capacity: int) -> list[int] | OSError:
        """At most `capacity` children."""
        ...

    def bsd_info(self, pid: int) -> BsdInfo | OSError:
        """What the kernel shows of one process, zombies too."""
        ...

    def rusage(self, pid: int) -> RusageInfo | OSError:
        """What one process has used."""
        ...

    def nanoseconds(self, ticks: int) -> int:
        """Ticks of the Mach clock in nanoseconds."""
        ...

    def boot_session(self) -> str | OSError:
        """The id of this boot."""
        ...


class _Loaded:
    """libproc as it is on this Mac."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._timebase = Timebase()
        library.mach_timebase_info(byref(self._timebase))

    def list_children(self, pid: int, capacity: int) -> list[int] | OSError:
        pids = (c_int * capacity)()
        ctypes.set_errno(0)
        count = self._library.proc_listchildpids(c_int(pid), byref(pids), c_int(ctypes.sizeof(pids)))
        error = ctypes.get_errno()
        return _error(error) if count < 0 or (count == 0 and error) else list(pids[:count])

    def bsd_info(self, pid: int) -> BsdInfo | OSError:
        info = BsdInfo()
        size = ctypes.sizeof(info)
        filled = self._library.proc_pidinfo(
            c_int(pid), c_int(_PIDTBSDINFO), c_uint64(_WITH_ZOMBIES), byref(info), c_int(size)
        )
        return info if filled == size else _error(ctypes.get_errno())

    def rusage(self, pid: int) -> RusageInfo | OSError:
        info = RusageInfo()
        failed = self._library.proc_pid_rusage(c_int(pid), c_int(_RUSAGE_INFO_V1), byref(info))
        return _error(ctypes.get_errno()) if failed else info

    def nanoseconds(self, ticks: int) -> int:
        return ticks * int(self._timebase.numer) // int(self._timebase.denom)

    def boot_session(self) -> str | OSError:
        text = ctypes.create_string_buffer(64)
        size = c_size_t(len(text))
        sysctl = self._library.sysctlbyname
        sysctl.argtypes = (c_char_p, ctypes.c_void_p, POINTER(c_size_t), ctypes.c_void_p, c_size_t)
        failed = sysctl(b"kern.bootsessionuuid", text, byref(size), None, 0)
        return _error(ctypes.get_errno()) if failed else text.value.decode("ascii")


def macos_table() -> "MacTable":
    """The table of this Mac."""
    return MacTable(_Loaded(ctypes.CDLL(None, use_errno=True)))


class MacTable:
    """Reads processes by libproc. `start` is in microseconds of the wall clock."""

    rule = IdentityRule.STARTED_BEFORE_LISTING
    lists_children = True

    def __init__(self, library: LibProc) -> None:
        self._library = library

    @property
    def boot_id(self) -> str | Gap[RunGap]:
        """The id of this boot session."""
        read = self._library.boot_session()
        return read if isinstance(read, str) and read else Gap(RunGap.NO_BOOT_ID)

    def now(self) -> int:
        """Microseconds of the wall clock, as starts are."""
        return time.time_ns() // 1000

    def age_seconds(self, start: int) -> float:
        """To the microsecond."""
        return (self.now() - start) / _MICROSECONDS

    def identity(self, pid: int) -> ProcessIdentity:
        """Host, boot, pid and start; a Mac has no pid namespaces, which is one namespace for all."""
        info = self._library.bsd_info(pid)
        return ProcessIdentity(
            host=os.uname().nodename,
            boot_id=self.boot_id,
            pid_namespace="macos",
            pid=pid,
            start_ticks=_start(info) if isinstance(info, BsdInfo) else Gap(RunGap.NO_START_TICKS),
        )

    def row(self, pid: int) -> ProcessRow | Gone | Unreadable:
        """Read one process, in two calls: what it is, and what it has used."""
        info, usage = self._library.bsd_info(pid), self._library.rusage(pid)
        if isinstance(info, OSError):
            return _absent(pid, info)
        if isinstance(usage, OSError):
            return _absent(pid, usage)
        zombie = info.status == _SZOMB
        return ProcessRow(
            pid=pid,
            parent=info.ppid,
            start=_start(info),
            session=None if zombie else _session(pid),
            zombie=zombie,
            own_cpu_seconds=self._seconds(usage.user_time + usage.system_time),
            waited_cpu_seconds=self._seconds(usage.child_user_time + usage.child_system_time),
            resident_bytes=usage.resident_size,
        )

    def children(self, pid: int) -> frozenset[int] | Gone | Unreadable:
        """List the children, zombies too; a list that fills its place is read again with more."""
        capacity = _FIRST_CAPACITY
        while True:
            listed = self._library.list_children(pid, capacity)
            if isinstance(listed, OSError):
                return _absent(pid, listed)
            if len(listed) < capacity:
                return frozenset(listed)
            capacity *= 2

    def parents(self) -> Mapping[int, int] | Unreadable | HiddenTable:
        """Not read: macOS lists children."""
        return HiddenTable("macOS lists children process by process")

    def pss_bytes(self, pid: int) -> int | Gap[ResourceGap]:
        """Unsupported: macOS divides no shared pages among their users."""
        return Gap(ResourceGap.UNSUPPORTED_PLATFORM, "macOS shows no proportional memory")

    def _seconds(self, ticks: int) -> float:
        return self._library.nanoseconds(ticks) / 1e9


def _start(info: BsdInfo) -> int:
    return int(info.start_tvsec) * _MICROSECONDS + int(info.start_tvusec)


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _absent(pid: int, error: OSError) -> Gone | Unreadable:
    if error.errno == errno.ESRCH:
        return Gone()
    return Unreadable(f"process {pid} of another user cannot be read: {error.strerror}")


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
