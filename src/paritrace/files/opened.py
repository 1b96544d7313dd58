"""A source file held open while its bytes are taken: what it is, is asked of the descriptor, never of the name."""

import os
from collections.abc import Iterator
from pathlib import Path

from paritrace.files.faults import translated
from paritrace.files.primitives import Primitives

CHUNK_BYTES = 1 << 18  # reads are streamed in such pieces: they stay in a core's cache, and memory is used again
_SEARCH_BYTES = 1 << 16  # a newline is looked for backwards in steps of this size


class OpenedFile:
    """Made by `Files.opened`. Raises `HostError` like every file operation."""

    def __init__(self, primitives: Primitives, path: Path, fd: int) -> None:
        self._primitives = primitives
        self._path = path
        self._fd = fd

    def stat(self) -> os.stat_result:
        with translated(self._path, "look at"):
            return self._primitives.fstat(self._fd)

    def chunks(self, start: int, length: int) -> Iterator[bytes]:
        """Yield the bytes from `start` on, `length` of them or fewer when the file ends before."""
        at, end = start, start + length
        while at < end:
            piece = self._piece(at, min(CHUNK_BYTES, end - at))
            if not piece:
                return
            at += len(piece)
            yield piece

    def end_of_last_line(self, start: int, end: int) -> int | None:
        """Return the offset behind the last newline in `[start, end)`, or None where there is none."""
        while end > start:
            begin = max(start, end - _SEARCH_BYTES)
            found = b"".join(self.chunks(begin, end - begin)).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
        return None

    def _piece(self, at: int, num_bytes: int) -> bytes:
        with translated(self._path, "read"):
            self._primitives.seek(self._fd, at)
            return self._primitives.read(self._fd, num_bytes)
