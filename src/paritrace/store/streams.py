"""Bytes that arrive in chunks as a file that is read, hashed on the way and decompressed in bounded memory."""

import hashlib
import zlib
from collections.abc import Iterable
from io import BufferedIOBase
from typing import IO, cast

import zstandard

from paritrace.errors import EvidenceError

MAX_WINDOW_BYTES = 128 << 20  # our frames need 8 MiB; a hostile one could ask for gigabytes
_GZIP = 31  # zlib's word for a gzip header and trailer
GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class HashedReader(BufferedIOBase):
    """A file of chunks that counts and hashes every byte it gives."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")
        self._digest = hashlib.sha256()
        self.num_bytes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = -1 if size is None else size
        pieces: list[memoryview] = []
        while wanted and self._fill():
            piece = self._rest if wanted < 0 else self._rest[:wanted]
            self._rest = self._rest[len(piece) :]
            wanted = wanted if wanted < 0 else wanted - len(piece)
            pieces.append(piece)
        data = b"".join(pieces)
        self._digest.update(data)
        self.num_bytes += len(data)
        return data

    def drain(self) -> None:
        """Read what is left, so that the digest is that of all bytes."""
        while self.read(1 << 20):
            pass

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def _fill(self) -> bool:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._rest = memoryview(chunk)
        return True


def decompressed(raw: HashedReader, *, suffix: str) -> IO[bytes]:
    """Return the plain bytes of a `.tar`, `.tar.zst` or `.tar.gz` as a file; it reads no further ahead than it must."""
    if suffix.endswith(".zst"):
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        return cast("IO[bytes]", decompressor.stream_reader(cast("IO[bytes]", raw), read_across_frames=True))
    return cast("IO[bytes]", _Gunzipped(raw) if suffix.endswith(".gz") else raw)


class _Gunzipped(BufferedIOBase):
    """The content of a gzip file, at most `size` bytes at a time whatever the compression."""

    def __init__(self, raw: HashedReader) -> None:
        super().__init__()
        self._raw = raw
        self._state = zlib.decompressobj(_GZIP)

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = (1 << 20) if size is None or size < 0 else size
        pieces: list[bytes] = []
        while wanted:
            piece = self._piece(wanted)
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        while not self._state.eof:
            data = self._state.unconsumed_tail or self._raw.read(1 << 16)
            try:
                piece = self._state.decompress(data, size)
            except zlib.error as cause:
                raise damaged(f"its gzip stream is damaged ({cause})") from cause
            if piece:
                return piece
            if not data:
                raise damaged("its gzip stream is cut off")
        return b""


def damaged(why: str) -> EvidenceError:
    """Return the error for an archive that cannot be read."""
    return EvidenceError(
        f"the archive is damaged: {why}", code="bad_archive", fix="copy it again from where it was made"
    )
