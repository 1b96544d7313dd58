"""File operations that fail, tear or stop at the Nth system call, for driving every N (EV-10, P4)."""

import errno
import os
from enum import StrEnum
from pathlib import Path

from paritrace.files import Files, Primitives


class Stopped(BaseException):
    """The process was killed here: no handler of ours may catch this, and nothing works after it."""


class Fault(StrEnum):
    FAIL = "fail"  # the operation does nothing and reports an error
    TEAR = "tear"  # a write takes half of its bytes, then reports an error; anything else fails
    STOP = "stop"  # killed before the operation
    TEAR_AND_STOP = "tear_and_stop"  # killed in the middle of a write; anything else stops
    DONE_THEN_STOP = "done_then_stop"  # killed just after the operation


class FaultyPrimitives(Primitives):
    """System calls that are counted; the one with number `at` (from 1) meets the fault.

    `log` names every operation that was begun, so that a test can say which one it was.
    """

    def __init__(self, *, at: int, fault: Fault, number: int = errno.ENOSPC) -> None:
        self.log: list[str] = []
        self._at = at
        self._fault = fault
        self._number = number
        self._stopped = False
        self._tear = False
        self._stop_next = False
        self._descriptors: set[int] = set()

    @property
    def count(self) -> int:
        return len(self.log)

    @property
    def happened(self) -> bool:
        return self.count >= self._at

    def before(self, operation: str, path: str) -> None:
        if self._stopped or self._stop_next:
            self._stopped = True
            raise Stopped
        self.log.append(operation)
        if self.count != self._at:
            return
        match self._fault:
            case Fault.FAIL:
                raise self._error(path)
            case Fault.STOP:
                self._stop()
            case Fault.DONE_THEN_STOP:
                self._stop_next = True
            case Fault.TEAR | Fault.TEAR_AND_STOP:
                self._tear = True
                if operation != "write":
                    self._torn(path)

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        fd = super().open(path, flags, mode)
        self._descriptors.add(fd)
        return fd

    def close(self, fd: int) -> None:
        if self._is_open(fd):
            super().close(fd)

    def drop(self, fd: int) -> None:
        if self._is_open(fd):
            super().drop(fd)

    def _is_open(self, fd: int) -> bool:
        """Say whether `fd` is ours to close: what was released may be another file's number by now."""
        known = fd in self._descriptors
        self._descriptors.discard(fd)
        return known

    def release(self) -> None:
        """Close what the kernel would close for a killed process."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def fsync(self, fd: int) -> None:
        """Count only: a kill that is played loses no page, and a drill of every N must be quick."""
        self.before("fsync", str(fd))

    def sync_file_system(self, fd: int) -> None:
        """Count only, as for `fsync`."""
        self.before("sync_file_system", str(fd))

    def write(self, fd: int, data: memoryview) -> int:
        self.before("write", str(fd))
        if not self._tear:
            return os.write(fd, data)
        half = data[: len(data) // 2]
        if half:
            os.write(fd, half)
            if self._fault is Fault.TEAR:
                self._at = self.count + 1  # the rest of the write meets the error
                self._tear = False
                self._fault = Fault.FAIL
                return len(half)
        self._torn(str(fd))
        raise AssertionError

    def _torn(self, path: str) -> None:
        self._tear = False
        if self._fault is Fault.TEAR:
            raise self._error(path)
        self._stop()

    def _stop(self) -> None:
        self._stopped = True
        raise Stopped

    def _error(self, path: str) -> OSError:
        return OSError(self._number, os.strerror(self._number), path)


class FaultyFiles(Files):
    """Files whose Nth operation meets a fault."""

    def __init__(self, *, at: int, fault: Fault, number: int = errno.ENOSPC) -> None:
        self.faulty = FaultyPrimitives(at=at, fault=fault, number=number)
        super().__init__(self.faulty)


class ErrnoFiles(Files):
    """Files on which one kind of operation always fails with one error, for example `rename` with `EXDEV`."""

    def __init__(self, *, operation: str, number: int) -> None:
        super().__init__(_AlwaysFailing(operation, number))


class _AlwaysFailing(Primitives):
    def __init__(self, operation: str, number: int) -> None:
        self._operation = operation
        self._number = number

    def before(self, operation: str, path: str) -> None:
        if operation == self._operation:
            raise OSError(self._number, os.strerror(self._number), path)


def hidden_leftovers(folder: Path) -> list[str]:
    """Return the temporary files below a folder that a kill left behind."""
    return sorted(str(path) for path in folder.rglob(".paritrace-*"))


def visible_files(folder: Path) -> set[str]:
    """Return the names below a folder that readers see, relative to it."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
