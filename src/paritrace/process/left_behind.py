"""Names what is left of a command when it has ended: members of its group, adopted orphans, holders of our output."""

import os
import stat

from msgspec import Struct

from paritrace.process.stat import name_in, parse_stat
from paritrace.process.stop_facts import Left

MOST_NAMED = 50  # a record is bounded; a command that leaves more leaves a crowd
_OUTPUTS = ((1, "standard output"), (2, "standard error"))


class _Row(Struct, frozen=True):
    name: str
    zombie: bool
    parent: int
    group: int
    start: int


def start_ticks(pid: int, *, proc: str = "/proc") -> int | None:
    """Return when a process started, in ticks after boot; None when it is gone."""
    row = _row(pid, proc)
    return None if row is None else row.start


def parent_of(pid: int, *, proc: str = "/proc") -> int | None:
    """Return the parent of a process; None when it is gone."""
    row = _row(pid, proc)
    return None if row is None else row.parent


def left_behind(host: int, *, since_ticks: int, adopted: bool, proc: str = "/proc") -> tuple[Left, ...]:
    """Return what lives of a command whose process `host` has ended, at most 50 of them.

    Args:
        since_ticks: when the command started: what is older was not started by it.
        adopted: we are a subreaper, so that its orphans are our children.

    A daemon that left both the group and the outputs is only found where we adopt orphans; a holder of our output that
    started later than the command may also be another program of the same pipeline, and is told as what it is.
    """
    outputs = _pipes()
    found: list[Left] = []
    for name in os.listdir(proc):
        if not name.isdigit() or int(name) in (os.getpid(), host):
            continue
        row = _row(int(name), proc)
        if row is None or row.zombie or row.start < since_ticks:
            continue
        relation = _relation(row, host, adopted=adopted)
        holds = _held(int(name), outputs, proc) if outputs else ()
        if relation or holds:
            told = relation or "started after the command"
            found.append(Left(pid=int(name), name=row.name, relation=told, holds=holds))
    return tuple(sorted(found, key=lambda one: one.pid)[:MOST_NAMED])


def group_lives(group: int) -> bool:
    """Say whether a process group has members, zombies included."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def outputs_are_pipes() -> bool:
    """Say whether somebody reads our output through a pipe, who would wait for its last holder."""
    return bool(_pipes())


def _relation(row: _Row, host: int, *, adopted: bool) -> str:
    if row.group == host:
        return "in the command's process group"
    return "an orphan that we adopted" if adopted and row.parent == os.getpid() else ""


def _pipes() -> dict[tuple[int, int], str]:
    """Our outputs that are pipes or sockets, by device and inode."""
    found: dict[tuple[int, int], str] = {}
    for fd, name in _OUTPUTS:
        try:
            seen = os.fstat(fd)
        except OSError:
            continue
        if stat.S_ISFIFO(seen.st_mode) or stat.S_ISSOCK(seen.st_mode):
            key = (seen.st_dev, seen.st_ino)
            found[key] = f"{found[key]} and {name}" if key in found else name
    return found


def _held(pid: int, outputs: dict[tuple[int, int], str], proc: str) -> tuple[str, ...]:
    held: set[str] = set()
    try:
        for fd in os.listdir(f"{proc}/{pid}/fd"):
            seen = os.stat(f"{proc}/{pid}/fd/{fd}")
            told = outputs.get((seen.st_dev, seen.st_ino))
            if told and _writes(pid, fd, proc):
                held.add(told)
    except OSError:  # it has ended meanwhile, or is another user's
        pass
    return tuple(sorted(held))


def _writes(pid: int, fd: str, proc: str) -> bool:
    """Whether a descriptor is open for writing: whoever reads our output holds the other end of the same pipe."""
    try:
        with open(f"{proc}/{pid}/fdinfo/{fd}", encoding="ascii") as stream:
            flags = next((line.split()[1] for line in stream if line.startswith("flags:")), "0")
    except OSError:
        return False
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def _row(pid: int, proc: str) -> _Row | None:
    try:
        with open(f"{proc}/{pid}/stat", "rb") as stream:
            text = stream.read()
        found = parse_stat(text)
    except (OSError, ValueError):
        return None
    return _Row(name_in(text), found.has_ended, found.parent, found.group, found.start_ticks)
