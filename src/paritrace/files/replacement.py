"""The content of a file that is being replaced, written piece by piece under a hidden name (EV-10)."""

from contextlib import suppress
from pathlib import Path

from paritrace.errors import InternalError
from paritrace.files.faults import translated
from paritrace.files.primitives import Primitives


class Replacement:
    """Takes the bytes in order; `Files.replacing` opens it and puts the finished file in place."""

    def __init__(self, primitives: Primitives, path: Path, fd: int, temporary: Path) -> None:
        self.temporary = temporary
        self.size = 0
        self._primitives = primitives
        self._path = path
        self._fd: int | None = fd

    def write(self, data: bytes) -> int:
        """Write all of `data`; short writes are continued.

        Raises:
            HostError: Refused, the file that stood there is untouched.
        """
        fd = self._open_fd()
        left = memoryview(data)
        with translated(self._path, "write"):
            while left:
                left = left[self._primitives.write(fd, left) :]
        self.size += len(data)
        return len(data)

    def finish(self, *, mode: int | None) -> None:
        """Force the content to disk and close it; `mode` is that of the file it replaces."""
        fd = self._open_fd()
        with translated(self._path, "force to disk"):
            if mode is not None:
                self._primitives.chmod(fd, mode)
            self._primitives.fsync(fd)
        self._fd = None
        with translated(self._path, "close"):
            self._primitives.close(fd)

    def abandon(self) -> None:
        """Close without a further word: what was written is given up."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                self._primitives.close(fd)

    def _open_fd(self) -> int:
        if self._fd is None:
            raise InternalError(f"write to the finished {self._path}", code="closed_file", fix="report this")
        return self._fd
