"""The content of a file that is being replaced, written piece by piece under a hidden name (EV-10)."""

from contextlib import suppress
from pathlib import Path

from paritrace.files.faults import translated
from paritrace.files.primitives import Primitives


class Replacement:
    """Takes the bytes in order; `Files.replacing` opens it and puts the finished file in place."""

    def __init__(self, primitives: Primitives, path: Path, fd: int) -> None:
        self._primitives = primitives
        self._path = path
        self._fd = fd
        self.size = 0

    def write(self, data: bytes) -> int:
        """Write all of `data`; short writes are continued.

        Raises:
            HostError: Refused, the file that stood there is untouched.
        """
        left = memoryview(data)
        with translated(self._path, "write"):
            while left:
                left = left[self._primitives.write(self._fd, left) :]
        self.size += len(data)
        return len(data)

    def finish(self, *, mode: int | None) -> None:
        """Force the content to disk and close it; `mode` is that of the file it replaces."""
        try:
            with translated(self._path, "force to disk"):
                if mode is not None:
                    self._primitives.chmod(self._fd, mode)
                self._primitives.fsync(self._fd)
        except BaseException:
            self.abandon()
            raise
        with translated(self._path, "close"):
            self._primitives.close(self._fd)

    def abandon(self) -> None:
        """Close without a further word: what was written is given up."""
        with suppress(OSError):
            self._primitives.close(self._fd)
