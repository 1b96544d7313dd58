"""Sees processes that are not our children end: when, and, where the kernel tells, by what exit code or signal.

A pidfd becomes readable when its process ends; from Linux 6.15 on it also hands out the wait status once the process's
own parent has taken it. Nothing is changed for that parent.
"""

import os
import select
import struct
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.process.left_behind import start_ticks
from paritrace.process.stop_facts import Exited, Signalled, Wait

LOOK_SECONDS = 0.5  # how often new processes are looked for; an end is seen at once
END_SECONDS = 5.0  # one look at a run directory; only a machine that stands still takes as long
_GET_INFO = 0xC040FF0B  # _IOWR(0xFF, 11, struct pidfd_info) with the 64 bytes of its first version
_INFO_EXIT = 1 << 3
_INFO = struct.Struct("=QQ11Ii")  # mask, cgroup, eleven numbers of who it is, the wait status


class Watched(Struct, frozen=True):
    """A process to watch, by number and start, under a name of its own."""

    name: str
    pid: int
    start_ticks: int


class SeenExit(Struct, frozen=True, forbid_unknown_fields=True):
    """The end of a watched process; `wait` is null where this kernel does not tell it to others than its parent."""

    name: str
    pid: int
    seen_ns: int
    wait: Wait | None


class ExitWatch:
    """Owns one thread between `start` and `stop`. `find` names the processes that are there by now."""

    def __init__(self, find: Callable[[], Iterable[Watched]], *, clock: Clock = SYSTEM) -> None:
        self._find = find
        self._clock = clock
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="paritrace-exits", daemon=True)
        self._open: dict[int, Watched] = {}
        self._known: set[str] = set()
        self._ended: dict[str, tuple[Watched, int, int]] = {}  # name -> who, when, its pidfd

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> tuple[SeenExit, ...]:
        """End the thread and return the ends that were seen, in their order."""
        self._over.set()
        self._thread.join(END_SECONDS)
        self._look(0)
        seen = sorted(self._ended.values(), key=lambda one: one[1])
        found = tuple(SeenExit(who.name, who.pid, at, exit_of(fd)) for who, at, fd in seen)
        for fd in (*self._open, *(fd for _, _, fd in seen)):
            with suppress(OSError):
                os.close(fd)
        return found

    def _run(self) -> None:
        while not self._over.is_set():
            with suppress(OSError):  # a folder that goes away meanwhile
                for one in self._find():
                    self._add(one)
            self._look(LOOK_SECONDS)

    def _add(self, one: Watched) -> None:
        if one.name in self._known:
            return
        self._known.add(one.name)
        try:
            fd = os.pidfd_open(one.pid)
        except OSError:  # it has ended before we saw it
            return
        if start_ticks(one.pid) == one.start_ticks:
            self._open[fd] = one
        else:
            os.close(fd)

    def _look(self, seconds: float) -> None:
        waiting = select.poll()
        for fd in self._open:
            waiting.register(fd, select.POLLIN)
        if not self._open:
            self._over.wait(seconds)
            return
        for fd, _ in waiting.poll(seconds * 1000):
            one = self._open.pop(fd)
            self._ended[one.name] = (one, self._clock.monotonic_ns(), fd)


def exit_of(pidfd: int) -> Wait | None:
    """Return the wait status behind a pidfd, None where the kernel does not tell it."""
    import fcntl

    asked = bytearray(_INFO.size)
    struct.pack_into("=Q", asked, 0, _INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, _GET_INFO, asked)
    except OSError:
        return None
    fields = _INFO.unpack(asked)
    if not fields[0] & _INFO_EXIT:
        return None
    code = os.waitstatus_to_exitcode(fields[-1])
    return Exited(code) if code >= 0 else Signalled(-code)
