"""The bytes of one put as the S3 library reads them: paced, hashed while they are sent, seekable for its next try."""

import base64
import io
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from paritrace.files import Files
from paritrace.store.targets.source_check import SourceCheck
from paritrace.store.throttle import Throttle


class PacedBody(io.RawIOBase):
    """A file, or one part of it, that is read at the throttle's pace.

    The last bytes are handed out only when all that were read have the recorded digest, so that other bytes never make
    a whole object.
    """

    def __init__(
        self, source: Path, size: int, *, sha256: str, checksum: str, throttle: Throttle, files: Files
    ) -> None:
        super().__init__()
        self._source = source
        self._sha256 = sha256
        self._checksum = checksum
        self._throttle = throttle
        self._size = size
        self._start, self._length = 0, size
        self._offset = 0
        self._check = self._new_check()
        self._hashed = 0
        self._open = ExitStack()
        self._file = self._open.enter_context(files.opened(source))

    def checksum(self) -> dict[str, str]:
        """The arguments by which the service checks the bytes as well, where it does."""
        return {"ChecksumSHA256": base64.b64encode(bytes.fromhex(self._sha256)).decode("ascii")}

    @contextmanager
    def part(self, start: int, length: int) -> Generator[None, None, None]:
        """Be only these bytes inside the block."""
        self._start, self._length, self._offset = start, length, 0
        yield

    def require_whole(self) -> None:
        """Raise unless all bytes were sent and have the recorded digest (`staged_bytes_changed`)."""
        check = self._check if self._hashed == self._size else self._new_check()  # that of no bytes at all
        check.require()

    def read(self, size: int = -1, /) -> bytes:
        left = self._length - self._offset
        wanted = left if size < 0 else min(size, left)
        data = next(self._file.chunks(self._start + self._offset, wanted), b"")
        self._throttle.take(len(data))
        self._hash(self._start + self._offset, data)
        self._offset += len(data)
        if data and self._start + self._offset == self._size:
            self.require_whole()
        return data

    def _hash(self, at: int, data: bytes) -> None:
        if at == 0:
            self._check, self._hashed = self._new_check(), 0
        if at <= self._hashed < at + len(data):  # what the library reads again for a next try is hashed once
            self._check.update(data[self._hashed - at :])
            self._hashed = at + len(data)

    def _new_check(self) -> SourceCheck:
        return SourceCheck(self._source, sha256=self._sha256, checksum=self._checksum)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._offset, os.SEEK_END: self._length}[whence]
        self._offset = max(0, base + offset)
        return self._offset

    def tell(self) -> int:
        return self._offset

    def close(self) -> None:
        if not self.closed:
            self._open.close()
        super().close()
