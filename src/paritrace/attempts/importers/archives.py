"""Zip archives with Zstandard members (method 93), read one member at a time and bounded (AT-16).

The library is `backports.zstd`, which is Python 3.14's own zipfile for older versions (docs/adr/0037).
"""

import io
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from paritrace.files import LOCAL
from paritrace.files.opened import OpenedFile

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

MOST_MEMBER_BYTES = 256 << 20  # one member is parsed in memory
MOST_TOTAL_BYTES = 64 << 30  # of all members together: what a bomb may cost is time for this much
MOST_MEMBERS = 2_000_000
_ENCRYPTED = 0x1
_DAMAGED = (zipfile.BadZipFile, ZstdError, NotImplementedError, EOFError, OSError, ValueError, RuntimeError)


class ArchiveError(Exception):
    """What is wrong with an archive or a member of it; the caller says which and where."""


class Member(Struct, frozen=True):
    name: str
    num_bytes: int


class Archive:
    """An opened archive. Raises `ArchiveError` alone."""

    def __init__(self, archive: "zipfile.ZipFile") -> None:
        self._archive = archive
        self._left = MOST_TOTAL_BYTES
        if len(archive.infolist()) > MOST_MEMBERS:
            raise ArchiveError(f"more than {MOST_MEMBERS:,} members")

    def members(self) -> Iterator[tuple[int, Member]]:
        """Yields every entry of the directory in order; two of one name are two."""
        for index, info in enumerate(self._archive.infolist()):
            yield index, Member(name=info.filename, num_bytes=info.file_size)

    def read(self, index: int) -> bytes:
        """Returns the content of an entry.

        Raises:
            ArchiveError: it is encrypted, larger than it may be, larger than it says, or damaged.
        """
        info = self._archive.infolist()[index]
        allowed = min(MOST_MEMBER_BYTES, self._left)
        if info.flag_bits & _ENCRYPTED:
            raise ArchiveError("encrypted")
        if info.file_size > allowed:
            raise ArchiveError(f"{info.file_size:,} bytes unpacked, more than the {allowed:,} that are read")
        try:
            with self._archive.open(info) as member:
                data = member.read(info.file_size + 1)
        except _DAMAGED as error:
            raise ArchiveError(f"cannot be unpacked: {type(error).__name__}") from error
        if len(data) != info.file_size:
            raise ArchiveError(f"unpacks to another size than the {info.file_size:,} bytes that the archive says")
        self._left -= len(data)
        return data


@contextmanager
def open_archive(path: Path) -> Generator[Archive, None, None]:
    """Opens a zip archive; a symbolic link is refused.

    Raises:
        ArchiveError: it is no zip archive, or it ends before its directory (torn).
        HostError: Refused: it cannot be read.
    """
    with LOCAL.opened(path) as opened:
        try:
            archive = zipfile.ZipFile(io.BufferedReader(_Seekable(opened)))
        except _DAMAGED as error:
            raise ArchiveError("not a zip archive, or torn before its directory at the end") from error
        with archive:
            yield Archive(archive)


class _Seekable(io.RawIOBase):
    """An opened file as the stream that zipfile wants."""

    def __init__(self, opened: OpenedFile) -> None:
        super().__init__()
        self._opened = opened
        self._size = opened.stat().st_size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError("a seek before the start")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: "memoryview | bytearray", /) -> int:  # type: ignore[override]
        piece = b"".join(self._opened.chunks(self._at, len(buffer)))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
