"""Reading files and folders: streamed, bounded, and never taking an unreadable file for an absent one."""

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paritrace.errors import HostError
from paritrace.files.faults import translated
from paritrace.files.opened import CHUNK_BYTES, OpenedFile
from paritrace.files.primitives import Primitives


class Reads:
    """The reading half of `Files`."""

    def __init__(self, primitives: Primitives) -> None:
        self._primitives = primitives

    def read(self, path: Path) -> bytes:
        """Return the whole content of a small file."""
        return b"".join(self.iter_chunks(path))

    def read_if_present(self, path: Path) -> bytes | None:
        """Return the whole content, or None when there is no file of that name."""
        try:
            return self.read(path)
        except HostError as error:
            if error.code == "not_found":
                return None
            raise

    def iter_chunks(
        self,
        path: Path,
        *,
        length: int | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        follow_links: bool = True,
    ) -> Iterator[bytes]:
        """Yield the bytes of a regular file in order, at most `length` of them; memory is one chunk."""
        flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
        with translated(path, "read"):
            fd = self._primitives.open(path, flags)
        try:
            with translated(path, "read"):
                require_regular(self._primitives.fstat(fd), path)
            left = length
            while left is None or left > 0:
                with translated(path, "read"):
                    chunk = self._primitives.read(fd, chunk_bytes if left is None else min(chunk_bytes, left))
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                yield chunk
        finally:
            self._primitives.drop(fd)

    @contextmanager
    def opened(self, path: Path) -> Generator[OpenedFile, None, None]:
        """Hold a regular file open for reading at several places; a symbolic link is refused."""
        with translated(path, "read"):
            fd = self._primitives.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            with translated(path, "read"):
                require_regular(self._primitives.fstat(fd), path)
            yield OpenedFile(self._primitives, path, fd)
        finally:
            self._primitives.drop(fd)

    def list(self, path: Path) -> tuple[Path, ...]:
        """Return the entries of a folder by name; hidden ones are left out (EV-23)."""
        with translated(path, "list"):
            names = self._primitives.names(path)
        return tuple(path / name for name in sorted(names) if not name.startswith("."))

    def list_all(self, path: Path) -> tuple[Path, ...]:
        """Return the entries of a folder by name, hidden ones too."""
        with translated(path, "list"):
            names = self._primitives.names(path)
        return tuple(path / name for name in sorted(names))

    def statuses(self, path: Path) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the names of a folder in order, hidden ones too, each with what it is itself; one that goes away
        meanwhile is left out. For folders of a million files: no path is made for each."""
        with translated(path, "list"):
            names = self._primitives.names(path)
            for name in sorted(names):
                with suppress(FileNotFoundError, NotADirectoryError):
                    yield name, self._primitives.lstat(f"{path}/{name}")

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        with translated(path, "look at"):
            return self._primitives.stat(path).st_size

    def modified_ns(self, path: Path) -> int:
        """Return when a file's content or a folder's names last changed, in ns of the file system's clock."""
        with translated(path, "look at"):
            return self._primitives.stat(path).st_mtime_ns

    def exists(self, path: Path) -> bool:
        """Say whether the name exists (a dangling symbolic link does)."""
        try:
            with translated(path, "look at"):
                self._primitives.lstat(path)
        except HostError as error:
            if error.code in ("not_found", "not_a_folder"):
                return False
            raise
        return True

    def lstat(self, path: Path) -> os.stat_result:
        """Return what the name itself is; a symbolic link is not followed."""
        with translated(path, "look at"):
            return self._primitives.lstat(path)

    def is_folder(self, path: Path) -> bool:
        """Say whether `path` is a folder itself, not a symbolic link to one."""
        with translated(path, "look at"):
            return stat.S_ISDIR(self._primitives.lstat(path).st_mode)

    def is_regular(self, path: Path) -> bool:
        """Say whether `path` is a regular file itself, not a symbolic link to one."""
        with translated(path, "look at"):
            return stat.S_ISREG(self._primitives.lstat(path).st_mode)

    def free_bytes(self, path: Path) -> int:
        """Return the free space of the file system that holds `path`."""
        with translated(path, "look at"):
            return self._primitives.free_bytes(path)


def require_regular(found: os.stat_result, path: Path) -> None:
    """Refuse what is not a plain file: folders, devices, pipes.

    Raises:
        HostError: Refused, code `not_a_file`.
    """
    if not stat.S_ISREG(found.st_mode):
        raise HostError(
            f"{path} is not a regular file", code="not_a_file", fix="name a regular file, not a folder or device"
        )
