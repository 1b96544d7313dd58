"""The one way to extend a file: whole lines, one write call each, torn tails kept apart (EV-7)."""

from pathlib import Path

from paritrace.errors import HostError, InternalError, Outcome
from paritrace.files.faults import host_error
from paritrace.files.primitives import Primitives

NEWLINE = b"\n"


class Appender:
    """The single writer of one append-only file, opened `O_APPEND`.

    `offset` is where the next byte goes. `torn` is `(offset, length)` of an incomplete last line that this writer
    found or left; it is never edited: the next write starts on a new line (and a journal names it in a record).
    """

    def __init__(self, primitives: Primitives, path: Path, fd: int, offset: int) -> None:
        self.path = path
        self.offset = offset
        self.torn: tuple[int, int] | None = None
        self._primitives = primitives
        self._fd: int | None = fd
        self._sync_failed = False

    def write(self, data: bytes) -> int:
        """Append whole lines; return the offset at which `data` starts.

        Raises:
            HostError: Refused when no byte was written; Failed when some were: they are `torn` from then on.
        """
        if not data.endswith(NEWLINE):
            raise InternalError("append of an incomplete line", code="incomplete_line", fix="report this")
        start = self.offset
        if self.torn is not None:
            data = NEWLINE + data
            start += 1
        self._write_all(memoryview(data))
        self.torn = None
        return start

    def _write_all(self, data: memoryview) -> None:
        start, fd = self.offset, self._open_fd()
        while data:
            try:
                written = self._primitives.write(fd, data)
            except OSError as cause:
                raise self._write_failed(cause, start) from cause
            self.offset += written
            data = data[written:]

    def _write_failed(self, cause: OSError, start: int) -> HostError:
        if self.offset == start:
            return host_error(cause, self.path, "append to")
        begin, length = self.torn if self.torn is not None else (start, 0)
        self.torn = (begin, length + self.offset - start)
        return host_error(cause, self.path, "append (cut off) to", outcome=Outcome.FAILED)

    def sync(self) -> None:
        """Force what was written to the disk.

        Raises:
            HostError: Failed; it is not tried again on this descriptor, since the kernel may have dropped the pages.
        """
        if self._sync_failed:
            raise HostError(
                f"{self.path} could not be forced to disk earlier",
                code="io_error",
                fix="check the disk; what was written before may be lost after a power cut",
                outcome=Outcome.FAILED,
            )
        try:
            self._primitives.fsync(self._open_fd())
        except OSError as cause:
            self._sync_failed = True
            raise host_error(cause, self.path, "force to disk", outcome=Outcome.FAILED) from cause

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        try:
            self._primitives.close(fd)
        except OSError as cause:
            raise host_error(cause, self.path, "close", outcome=Outcome.FAILED) from cause

    def __enter__(self) -> "Appender":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_fd(self) -> int:
        if self._fd is None:
            raise InternalError(f"write to the closed {self.path}", code="closed_file", fix="report this")
        return self._fd
