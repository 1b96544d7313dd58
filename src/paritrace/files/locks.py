"""Kernel locks with a bounded wait; the kernel lets go when a holder dies, so no lock is ever stale (EV-11, P5)."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from paritrace.clock import SYSTEM, Clock, rfc3339
from paritrace.errors import HostError
from paritrace.files.faults import translated
from paritrace.files.holders import command_of, holders_of
from paritrace.files.primitives import Primitives

LOCK_WAIT_SECONDS = 120.0  # a holder keeps a lock for two forcings to disk, some 30 ms: enough for a thousand ranks
LOCK_POLL_SECONDS = 0.01  # short beside the holding time of a replace with two fsyncs
MARK_BYTES = 4096  # what a holder says of itself in the lock file is one line

_LET_IT_END = "let that process end, or end it, then try again"

_held: set[int] = set()  # a forked child shares our open file, and would keep the lock when we end


def _let_go_in_child() -> None:
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_let_go_in_child)


def _unmarked(mark: bytes) -> str:  # noqa: ARG001  the mark is not one that this lock's users write
    return ""


class Locks:
    """The locking part of `Files`."""

    def __init__(self, primitives: Primitives) -> None:
        self._primitives = primitives

    @contextmanager
    def locked(
        self, path: Path, *, clock: Clock = SYSTEM, wait_seconds: float = LOCK_WAIT_SECONDS
    ) -> Generator[None, None, None]:
        """Hold the kernel lock of the file `path`, which is made when missing and never removed.

        Raises:
            HostError: Refused, code `lock_timeout` after `wait_seconds`, `no_locks` where there are none.
        """
        fd = self._acquired(path, _unmarked, clock=clock, wait_seconds=wait_seconds)
        try:
            yield
        finally:
            self._let_go(fd)

    @contextmanager
    def locked_by(
        self,
        path: Path,
        mark: bytes,
        *,
        admits: Callable[[bytes], None],
        told: Callable[[bytes], str] = _unmarked,
        clock: Clock = SYSTEM,
        wait_seconds: float = LOCK_WAIT_SECONDS,
    ) -> Generator[None, None, None]:
        """Hold the lock as `locked` does, with `mark` in the file meanwhile; a holder that dies leaves its mark.

        Args:
            mark: at most 4096 bytes that say who holds it.
            admits: is given the mark that was left behind, empty where the last holder let go, and raises where the
                lock must not be taken.
            told: is given the mark of who holds it when the wait is over, and says that in words; empty when unknown.
        """
        fd = self._acquired(path, told, clock=clock, wait_seconds=wait_seconds)
        try:
            with translated(path, "read the lock"):
                admits(self._primitives.read(fd, MARK_BYTES))
            self._write_mark(fd, path, mark)
            yield
            self._write_mark(fd, path, b"")
        finally:
            self._let_go(fd)

    def _acquired(self, path: Path, told: Callable[[bytes], str], *, clock: Clock, wait_seconds: float) -> int:
        """The descriptor of the locked file that bears the name: whoever replaced it meanwhile locks another one."""
        deadline = clock.monotonic_ns() + int(wait_seconds * 1e9)
        while True:
            fd = self._lock_file(path)
            try:
                self._wait(fd, path, told, deadline=deadline, clock=clock, wait_seconds=wait_seconds)
                if self._bears_name(fd, path):
                    return fd
            except BaseException:
                self._let_go(fd)
                raise
            self._let_go(fd)

    def _wait(
        self,
        fd: int,
        path: Path,
        told: Callable[[bytes], str],
        *,
        deadline: int,
        clock: Clock,
        wait_seconds: float,
    ) -> None:
        while not self._try_lock(fd, path):
            if clock.monotonic_ns() >= deadline:
                holder = self._holder(fd, path, told)
                raise HostError(
                    f"{path} stayed locked for {wait_seconds:g} s" + (f" by {holder}" if holder else ""),
                    code="lock_timeout",
                    fix=_LET_IT_END if holder else "another process holds it: see which (fuser, lsof), then try again",
                )
            clock.sleep(LOCK_POLL_SECONDS)

    def _holder(self, fd: int, path: Path, told: Callable[[bytes], str]) -> str:
        """Who holds the lock: by the mark in the file, since when it is there, and what /proc shows of the process."""
        with translated(path, "look at the lock"):
            status = self._primitives.fstat(fd)
            self._primitives.seek(fd, 0)
            said = told(self._primitives.read(fd, MARK_BYTES))
        seen = [(pid, command_of(pid)) for pid in holders_of(status)]
        who = f"{said} since {rfc3339(status.st_mtime_ns)}" if said else ", ".join(f"process {pid}" for pid, _ in seen)
        commands = "; ".join(command for _, command in seen if command)
        return f"{who}: {commands}" if who and commands else who

    def _lock_file(self, path: Path) -> int:
        with translated(path, "open the lock"):
            fd = self._primitives.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        _held.add(fd)
        return fd

    def _let_go(self, fd: int) -> None:
        if fd in _held:  # not in a forked child, where it is closed already
            _held.discard(fd)
            try:
                self._primitives.unlock(fd)
            finally:
                self._primitives.drop(fd)

    def _try_lock(self, fd: int, path: Path) -> bool:
        with translated(path, "lock"):
            try:
                self._primitives.lock(fd)
            except BlockingIOError:
                return False
        return True

    def _bears_name(self, fd: int, path: Path) -> bool:
        with translated(path, "look at the lock"):
            try:
                named = self._primitives.stat(path)
            except FileNotFoundError:
                return False
            own = self._primitives.fstat(fd)
        return (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)

    def _write_mark(self, fd: int, path: Path, mark: bytes) -> None:
        with translated(path, "mark the lock"):
            self._primitives.truncate(fd, 0)
            self._primitives.seek(fd, 0)
            left = memoryview(mark)
            while left:
                left = left[self._primitives.write(fd, left) :]
