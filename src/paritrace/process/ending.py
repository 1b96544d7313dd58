"""Ends a process with all that it started, also when the process that asked for it is killed (P5, CP-15).

Run as a program, `python ending.py`, it is a guard: it reads from its input the number of a process, and ends that
process and all below it when its input ends without a further word, as it does when whoever holds the other end is
killed. It needs nothing but the standard library, so that it starts in some ten milliseconds and holds little memory.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

GRACE_SECONDS = 10.0  # a workload that handles SIGTERM writes a last record; torchrun takes a few seconds for its ranks
POLL_SECONDS = 0.05  # how often processes that were told to end are looked at
PROC = "/proc"
DONE = b"done\n"
_STATE, _PARENT, _START = 0, 1, 19  # fields of /proc/PID/stat behind the name, whose closing parenthesis is the last

Known = dict[int, str]
"""Processes by number, each with its start time: a number alone may belong to another one by now."""


Sent = Callable[[int, int], None]
"""Told each signal that arrived somewhere: its number, and the process or, below zero, the group."""


def _not_told(_number: int, _to: int) -> None:
    """Nobody wants to know."""


def end_tree(leader: int, *, grace_seconds: float = GRACE_SECONDS, sent: Sent = _not_told) -> None:
    """Tell the process group of `leader`, and all that comes from it, to end; kill after the grace what has not.

    One that is stopped is continued, so that it can hear what it is told.

    Launchers put their ranks into sessions of their own, which no signal to a group reaches: they are found by their
    parents, as long as these live, and remembered.
    """
    known = below({leader: _started(leader)})
    until = time.monotonic() + grace_seconds
    _send_group(leader, signal.SIGTERM, sent)
    _send_group(leader, signal.SIGCONT, sent)
    known = _wait_while(lambda _: _group_lives(leader), known, until=until)
    _send_each(known, signal.SIGTERM, sent)  # what a launcher left that ended without a word to its ranks
    known = _wait_while(lambda now: _group_lives(leader) or bool(_living(now)), known, until=until)
    if _group_lives(leader):
        _send_group(leader, signal.SIGKILL, sent)
    _send_each(below(known), signal.SIGKILL, sent)


def _wait_while(lives: Callable[[Known], bool], known: Known, *, until: float) -> Known:
    """Wait, at most until then, and return what is known of all processes by now."""
    while lives(known) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        known = below(known)
    return known


def below(known: Known) -> Known:
    """These processes and all that they started, as far as parents that still live tell."""
    rows = _table()
    found = dict(known)
    fresh = {pid for pid, start in known.items() if rows.get(pid, ("", 0, ""))[2] == start}
    while fresh:
        fresh = {pid for pid, (_, parent, _) in rows.items() if parent in fresh} - found.keys()
        found |= {pid: rows[pid][2] for pid in fresh}
    return found


def children_of(parent: int) -> Known:
    """The children of a process that have not been waited for, zombies among them."""
    return {pid: start for pid, (_, of, start) in _table().items() if of == parent}


def _living(known: Known) -> list[int]:
    rows = _table()
    return [pid for pid, start in known.items() if pid in rows and rows[pid][0] != "Z" and rows[pid][2] == start]


def _group_lives(group: int) -> bool:
    """Whether a process of a group has not ended; one that nobody has waited for yet has."""
    return any(state != "Z" for pid, (state, _, _) in _table().items() if _group_of(pid) == group)


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return -1


def _table() -> dict[int, tuple[str, int, str]]:
    """State, parent and start time of every process that can be seen."""
    numbers = (int(name) for name in os.listdir(PROC) if name.isdigit())
    rows = ((pid, _stat(pid)) for pid in numbers)
    return {pid: (row[_STATE], int(row[_PARENT]), row[_START]) for pid, row in rows if row}


def _stat(pid: int) -> list[str]:
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as stream:
            text = stream.read()
    except OSError:  # it has ended meanwhile
        return []
    return text[text.rindex(b")") + 2 :].decode("ascii", "replace").split()


def _started(pid: int) -> str:
    row = _stat(pid)
    return row[_START] if row else ""


def _send_each(known: Known, number: int, sent: Sent) -> None:
    for pid in _living(known):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            sent(number, pid)


def _send_group(group: int, number: int, sent: Sent) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all of it has ended
        os.killpg(group, number)
        sent(number, -group)


def _guard() -> None:
    """Wait for the end of our input; nothing else ends us, so that whoever is told to end with us is still guarded."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    first = sys.stdin.buffer.readline()
    if not first.strip().isdigit():
        return  # whoever asked was killed before it started anything, or could not start it
    leader = int(first)
    start = _started(leader)
    if sys.stdin.buffer.readline() != DONE and start and _started(leader) == start:
        end_tree(leader)


if __name__ == "__main__":
    _guard()
