"""The archive format of a packed run: a tar inside one zstd frame, run.json first, an inventory last.

Header fields are fixed (no owner, no times), members are sorted: equal runs give equal archives. tar headers are
encoded and decoded by the standard library.
"""

import hashlib
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import zstandard
from msgspec import Struct

from paritrace.errors import EvidenceError

FORMAT = "paritrace-pack"
VERSION = "1.0"
INVENTORY_NAME = ".pack.json"  # hidden: readers of the unpacked folder ignore it
LEVEL = 1  # measured on traces: level 1 is both faster and smaller than level 3 (notes C.3)
MAX_NAME_BYTES = 4096
MAX_MEMBERS = 1_000_000  # a run of ten thousand ranks has some thirty thousand files
MAX_PADDING_BYTES = 1 << 20  # tar programs fill records of 10 KiB, some of 1 MiB
FEED_BYTES = 512  # 4 bytes of a hostile frame can hold 128 KiB: at most 16 MiB come out of one feed
_BLOCK = tarfile.BLOCKSIZE
_MODE = 0o644


class Member(Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    num_bytes: int
    sha256: str


class Inventory(Struct, frozen=True, tag_field="type", tag="pack", forbid_unknown_fields=True):
    """The last member: what the archive holds. Without it the archive is cut off."""

    format: str
    version: str
    run_id: str
    members: tuple[Member, ...]


class Source(Struct, frozen=True):
    """A member to write: exactly `num_bytes` bytes come out of `chunks`."""

    path: str
    num_bytes: int
    chunks: Iterable[bytes]


def member_bytes(source: Source, seen: list[Member]) -> Iterator[bytes]:
    """Yield the tar bytes of one member and append what was written to `seen`.

    Raises:
        EvidenceError: Refused, code `changed_while_read`.
    """
    yield _header(source)
    digest, num_bytes = hashlib.sha256(), 0
    for chunk in source.chunks:
        digest.update(chunk)
        num_bytes += len(chunk)
        yield chunk
    if num_bytes != source.num_bytes:
        raise EvidenceError(
            f"{source.path} changed while it was read: {num_bytes} bytes instead of {source.num_bytes}",
            code="changed_while_read",
            fix="pack the run after it has ended",
        )
    yield b"\0" * (-num_bytes % _BLOCK)
    seen.append(Member(path=source.path, num_bytes=num_bytes, sha256=digest.hexdigest()))


def end_bytes() -> bytes:
    """Return what ends a tar."""
    return b"\0" * (2 * _BLOCK)


def compressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks as one zstd frame with a checksum of its content."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
    for chunk in chunks:
        data = compressor.compress(chunk)
        if data:
            yield data
    yield compressor.flush()


class ArchiveStream:
    """Reads the members of an archive in order from its compressed bytes, in bounded memory."""

    def __init__(self, chunks: Iterable[bytes], *, name: str) -> None:
        self._chunks = (chunk[at : at + FEED_BYTES] for chunk in chunks for at in range(0, len(chunk), FEED_BYTES))
        self._name = name
        self._decompressor = zstandard.ZstdDecompressor().decompressobj()
        self._buffer = bytearray()

    def members(self) -> Iterator[tuple[str, int]]:
        """Yield path and size of each member; its `body` is to be read before the next one is asked for."""
        for _ in range(MAX_MEMBERS):
            path, size = self._next_header()
            if not path:
                self._require_end()
                return
            yield path, size
        raise self.bad(f"more than {MAX_MEMBERS} members")

    def body(self, num_bytes: int) -> Iterator[bytes]:
        """Yield the bytes of the present member."""
        left = num_bytes
        while left:
            self._fill(1)
            piece = bytes(self._buffer[:left])
            del self._buffer[: len(piece)]
            left -= len(piece)
            yield piece
        self._take(-num_bytes % _BLOCK)

    def _next_header(self) -> tuple[str, int]:
        """Return path and size of the next member, or an empty path at the end."""
        info = self._header()
        if info is None:
            return "", 0
        if info.type != tarfile.GNUTYPE_LONGNAME:
            return self._checked(info.name, info)
        if not 0 < info.size <= MAX_NAME_BYTES:
            raise self.bad("a member's name is too long")
        raw = b"".join(self.body(info.size)).rstrip(b"\0")
        following = self._header()
        if following is None:
            raise self.bad("a long name without its member")
        return self._checked(raw.decode("utf-8", "surrogateescape"), following)

    def _header(self) -> tarfile.TarInfo | None:
        block = self._take(_BLOCK)
        if not block.strip(b"\0"):
            return None
        try:
            return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.TarError as cause:
            raise self.bad(f"a damaged tar header ({cause})") from cause

    def _checked(self, name: str, info: tarfile.TarInfo) -> tuple[str, int]:
        path = PurePosixPath(name)
        escapes = path.is_absolute() or ".." in path.parts or "\0" in name or str(path) != name or name == "."
        if escapes or info.type != tarfile.REGTYPE or info.size < 0:
            raise self.bad(f"member {name[:200]!r} is not a plain file inside the run")
        return name, info.size

    def _require_end(self) -> None:
        """Allow the zeros with which tar programs fill their last record, and nothing else."""
        self._take(_BLOCK)
        rest = len(self._buffer)
        clean = not self._buffer.strip(b"\0")
        for chunk in self._chunks:
            if self._decompressor.eof or not clean or rest > MAX_PADDING_BYTES:
                raise self.bad("bytes after its end")
            data = self._decompress(chunk)
            rest += len(data)
            clean = not data.strip(b"\0")
        ended = self._decompressor.eof and not self._decompressor.unused_data
        if not clean or rest > MAX_PADDING_BYTES or not ended:
            raise self.bad("it does not end where it should")

    def _take(self, num_bytes: int) -> bytes:
        self._fill(num_bytes)
        taken = bytes(self._buffer[:num_bytes])
        del self._buffer[:num_bytes]
        return taken

    def _fill(self, num_bytes: int) -> None:
        while len(self._buffer) < num_bytes:
            chunk = next(self._chunks, None)
            if chunk is None or self._decompressor.eof:
                raise self.bad("it is cut off")
            self._buffer += self._decompress(chunk)

    def _decompress(self, chunk: bytes) -> bytes:
        try:
            return self._decompressor.decompress(chunk)
        except zstandard.ZstdError as cause:
            raise self.bad(str(cause)) from cause

    def bad(self, why: str) -> EvidenceError:
        """Return the error for an archive that cannot be used."""
        return EvidenceError(
            f"{self._name} is not a whole archive of a run: {why}",
            code="bad_archive",
            fix="name a run directory, or an archive made by `paritrace runs pack`; copy it again if it was cut off",
        )


def _header(source: Source) -> bytes:
    info = tarfile.TarInfo(source.path)
    info.size = source.num_bytes
    info.mode = _MODE
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
