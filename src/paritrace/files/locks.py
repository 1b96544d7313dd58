"""Kernel locks with a bounded wait; the kernel lets go when a holder dies, so no lock is ever stale (EV-11, P5)."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError
from paritrace.files.faults import translated
from paritrace.files.primitives import Primitives

LOCK_WAIT_SECONDS = 120.0  # a holder keeps a lock for two forcings to disk, some 30 ms: enough for a thousand ranks
LOCK_POLL_SECONDS = 0.01  # short beside the holding time of a replace with two fsyncs


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
        deadline = clock.monotonic_ns() + int(wait_seconds * 1e9)
        fd = self._lock_file(path)
        try:
            while not self._try_lock(fd, path):
                if clock.monotonic_ns() >= deadline:
                    raise HostError(
                        f"{path} stayed locked for {wait_seconds:g} s",
                        code="lock_timeout",
                        fix="another process holds it: see which (fuser, lsof), then try again",
                    )
                clock.sleep(LOCK_POLL_SECONDS)
            yield
        finally:
            self._primitives.drop(fd)

    def _lock_file(self, path: Path) -> int:
        with translated(path, "open the lock"):
            return self._primitives.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)

    def _try_lock(self, fd: int, path: Path) -> bool:
        with translated(path, "lock"):
            try:
                self._primitives.lock(fd)
            except BlockingIOError:
                return False
        return True
