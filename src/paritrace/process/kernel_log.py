"""Reads the kernel's log from a moment on, for the two lines that name a victim: out-of-memory kills and Xid errors."""

import os
import re
from contextlib import suppress

from msgspec import Struct

KMSG = "/dev/kmsg"
RECORD_BYTES = 8192  # the kernel hands out one record per read, at most this long
MOST_RECORDS = 10_000  # a ring buffer holds some thousands; a log that is written as fast as it is read ends here

_OOM = r"oom-kill:constraint=(\w+),.*?task_memcg=(?P<cgroup>[^,]*),task=(?P<name>.*),pid=(?P<pid>\d+),uid="
_XID = r"NVRM: Xid \((?P<device>[^)]*)\): (?P<number>\d+)"


class OomKill(Struct, frozen=True):
    """A kill of the out-of-memory killer. `pid`: as the machine's first pid namespace counts, not a container."""

    pid: int
    name: str
    cgroup: str


class Xid(Struct, frozen=True):
    """An error of an NVIDIA device that its driver logged; `after_boot_us`: the log's own time."""

    device: str
    number: int
    after_boot_us: int


class KernelLog:
    """The records from when this was made on. `trouble`: why the log cannot be read; then there are none."""

    def __init__(self, path: str = KMSG, *, from_start: bool = False) -> None:
        self.trouble = ""
        self._fd = -1
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_SET if from_start else os.SEEK_END)
        except OSError as error:
            self.trouble = f"the kernel's log cannot be read: {error.strerror}"
            self.close()

    def records(self) -> list[str]:
        """Return what was logged since the last call, oldest first."""
        found: list[str] = []
        while self._fd >= 0 and len(found) < MOST_RECORDS:
            try:
                data = os.read(self._fd, RECORD_BYTES)
            except BrokenPipeError:  # records were overwritten before we came: the next read goes on behind the gap
                continue
            except OSError:  # nothing more for now
                break
            if not data:
                break
            found.append(data.decode("utf-8", "replace"))
        return found

    def close(self) -> None:
        """Let go of the log; closing twice is allowed."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)


def oom_kills(records: list[str]) -> list[OomKill]:
    """Return the out-of-memory kills among records of the log: pure."""
    found = (re.search(_OOM, record) for record in records)
    return [OomKill(int(one["pid"]), one["name"], one["cgroup"]) for one in found if one]


def xids(records: list[str]) -> list[Xid]:
    """Return the device errors among records of the log: pure."""
    return [
        Xid(found["device"], int(found["number"]), _microseconds(record))
        for record in records
        if (found := re.search(_XID, record))
    ]


def _microseconds(record: str) -> int:
    """`PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT`."""
    fields = record.partition(";")[0].split(",")
    return int(fields[2]) if len(fields) > 2 and fields[2].isdigit() else 0
