"""Which process holds a kernel lock, as far as /proc of this machine shows it."""

import os
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
MAX_COMMAND_CHARACTERS = 160  # two lines of a terminal
_KIND, _PID, _FILE = 1, 4, 5  # columns of /proc/locks: `1: FLOCK ADVISORY WRITE 4711 fe:00:131 0 EOF`
_HEX = 16


def holders_of(status: os.stat_result, *, proc: Path = PROC) -> tuple[int, ...]:
    """Return the pids that hold the lock of a file; those of other containers, and other systems', are not shown."""
    try:
        lines = (proc / "locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return ()
    rows = (line.split() for line in lines)
    return tuple(int(row[_PID]) for row in rows if _is_lock_of(row, status))


def command_of(pid: int, *, proc: Path = PROC) -> str:
    """Return the command line of a process in printable characters, cut off where it is long; empty when unknown."""
    words: list[str] = []
    with suppress(OSError):
        words = (proc / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    told = "".join(char if char.isprintable() else "?" for char in " ".join(words).strip())
    return told if len(told) <= MAX_COMMAND_CHARACTERS else f"{told[:MAX_COMMAND_CHARACTERS]}…"


def _is_lock_of(row: list[str], status: os.stat_result) -> bool:
    if len(row) <= _FILE or row[_KIND] != "FLOCK" or not row[_PID].isdecimal() or int(row[_PID]) == 0:
        return False
    major, minor, inode = row[_FILE].split(":")
    named = (int(major, _HEX), int(minor, _HEX), int(inode))
    return named == (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)
