"""Files: durable replace, claim, append, bounded reads and locks, over one set of system calls."""

import errno
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from paritrace.errors import HostError, Outcome
from paritrace.files.appender import NEWLINE, Appender
from paritrace.files.faults import host_error, translated
from paritrace.files.locks import Locks
from paritrace.files.primitives import Primitives
from paritrace.files.reads import Reads, require_regular
from paritrace.files.replacement import Replacement

TEMPORARY_PREFIX = ".paritrace-"  # hidden: every reader ignores it
_TAIL_BYTES = 1 << 16
_READABLE = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH  # two bits above the three that let run


class Files(Reads, Locks):
    """File operations for one machine. Every method raises `HostError` with code and mend, never `OSError`."""

    def __init__(self, primitives: Primitives | None = None) -> None:
        super().__init__(primitives if primitives is not None else Primitives())

    def replace(self, path: Path, data: bytes, *, mode: int | None = None) -> None:
        """Put `data` under the name `path`: readers see the old bytes or the new ones, never a mixture (EV-10).

        A symbolic link is followed and its destination replaced; an existing file keeps its mode, a new one has 0666
        under the umask; missing parent folders are made.

        Raises:
            HostError: Refused, the old file is untouched and no temporary file is left; Failed only when the new
                content is in place but its folder could not be forced to disk.
        """
        with self.replacing(path, mode=mode) as replacement:
            replacement.write(data)

    @contextmanager
    def replacing(self, path: Path, *, mode: int | None = None) -> Generator[Replacement, None, None]:
        """Put what is written inside the block under the name `path`, as `replace` does, in bounded memory.

        Nothing is put there when the block raises; the old file is untouched then. `mode`: the permissions it has from
        its first byte on; those of the file it replaces where none are given.
        """
        target = self._resolved(path)
        self.mkdir(target.parent)
        kept = self._mode_of_file(target)
        with self._staged(path, target.parent, mode=mode) as replacement:
            yield replacement
            replacement.finish(mode=kept if mode is None else mode)
            with translated(path, "replace"):
                self._primitives.rename(replacement.temporary, target)
        self._sync_folder_of(path, target.parent)

    def create(self, path: Path, chunks: Iterable[bytes]) -> None:
        """Write a new file from a stream; the name appears last and only if nothing has it.

        Raises:
            HostError: Refused, code `already_there` and others, nothing is left; Failed as for `replace`.
        """
        self.mkdir(path.parent)
        with self._staged(path, path.parent) as replacement:
            for chunk in chunks:
                replacement.write(chunk)
            replacement.finish(mode=None)
            with translated(path, "create"):
                self._primitives.link(replacement.temporary, path)
        self._discard(replacement.temporary)
        self._sync_folder_of(path, path.parent)

    def share(self, source: Path, path: Path) -> bool:
        """Give a file that never changes again a second name; copy it where it can have none, in another file system.

        Returns:
            Whether both are names of one file, which takes its space once.

        Raises:
            HostError: Refused, code `already_there` and others, nothing is left; Failed as for `replace`.
        """
        self.mkdir(path.parent)
        with translated(path, "create"):
            try:
                self._primitives.link(source, path)
            except FileExistsError:
                raise
            except OSError:
                shared = False
            else:
                shared = True
        if shared:
            self._sync_folder_of(path, path.parent)
        else:
            self.create(path, self.iter_chunks(source))
        return shared

    def publish(self, path: Path, chunks: Iterable[bytes], *, num_bytes: int, exclusive: bool) -> None:
        """Copy a stream of `num_bytes` to storage that others read: the name appears last, whole and durable (ST-6).

        Args:
            exclusive: nobody else may have the name, by one atomic call. Without it the name must be one that only
                these bytes can have (their digest is a part of it), since a rename replaces what is there.

        Raises:
            HostError: Refused: `already_there`, `short_copy` when the stream had another length, and others; nothing
                is left. Failed: it is in place, but its folder could not be forced to disk.
        """
        made = self._made_folders(path.parent)
        with self._staged(path, path.parent) as replacement:
            for chunk in chunks:
                replacement.write(chunk)
            _require_length(path, replacement.size, num_bytes)
            replacement.finish(mode=None)
            self._name(replacement.temporary, path, exclusive=exclusive)
        for folder in (path.parent, *(folder.parent for folder in made)):
            self._sync_folder_of(path, folder)

    def sync_existing(self, path: Path) -> None:
        """Force a file that is there already, and its name, to disk: a publisher may have died before it did."""
        with translated(path, "force to disk"):
            fd = self._primitives.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                self._primitives.fsync(fd)
            finally:
                self._primitives.drop(fd)
        self._sync_folder_of(path, path.parent)

    def write_scratch(self, path: Path, chunks: Iterable[bytes]) -> None:
        """Write a new file into a private scratch folder; nothing is forced to disk."""
        self.mkdir(path.parent)
        with translated(path, "write"):
            fd = self._primitives.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            for chunk in chunks:
                with translated(path, "write"):
                    self._write_all(fd, chunk)
        finally:
            with translated(path, "close"):
                self._primitives.close(fd)

    def extend_scratch(self, path: Path, chunks: Iterable[bytes | memoryview], *, new: bool = False) -> None:
        """Write at the end of a file of a folder that nobody sees yet; `sync_all` forces it to disk with the rest.

        Args:
            new: nothing has the name yet; `already_there` otherwise.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | (os.O_EXCL if new else 0)
        with translated(path, "write"):
            fd = self._primitives.open(path, flags)
        try:
            for chunk in chunks:
                with translated(path, "write"):
                    self._write_all(fd, chunk)
        finally:
            with translated(path, "close"):
                self._primitives.close(fd)

    def sync_all(self, folder: Path) -> None:
        """Force everything on the file system of `folder` to disk: one call for any number of new files."""
        with translated(folder, "force to disk the file system of"):
            fd = self._primitives.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                self._primitives.sync_file_system(fd)
            finally:
                self._primitives.drop(fd)

    def publish_folder(self, folder: Path, path: Path) -> None:
        """Give a finished folder its name, in one step and only where nothing has that name.

        Raises:
            HostError: Refused, code `already_there` and others; Failed when the name is there but could not be forced
                to disk.
        """
        with translated(path, "publish"):
            self._primitives.rename_new(folder, path)
        self._sync_folder_of(path, path.parent)

    def write_once(self, path: Path, data: bytes) -> bool:
        """Write a content-addressed file; return False when a file of that name and size is there already."""
        with suppress(HostError):
            if self.size(path) == len(data):
                return False
        self.replace(path, data)
        return True

    def append_new(self, path: Path) -> Appender:
        """Create `path` for appending; a symbolic link of that name is refused too, wherever it leads.

        Raises:
            HostError: Refused, code `already_there` when the name exists (one writer per file).
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with translated(path, "create"):
            fd = self._primitives.open(path, flags)
        return Appender(self._primitives, path, fd, 0)

    def append_existing(self, path: Path) -> Appender:
        """Open `path` for appending at its end; an incomplete last line becomes the appender's `torn` (EV-7)."""
        with translated(path, "open"):
            fd = self._primitives.open(path, os.O_RDWR | os.O_APPEND)
            try:
                size = self._primitives.fstat(fd).st_size
                torn = self._torn_tail(fd, size)
            except BaseException:
                self._primitives.close(fd)
                raise
        appender = Appender(self._primitives, path, fd, size)
        appender.torn = torn
        return appender

    def mkdir(self, path: Path) -> None:
        """Make a folder with its missing parents; an existing folder is fine."""
        missing = [path] if not path.is_dir() else []
        while missing and not missing[-1].parent.is_dir() and missing[-1].parent != missing[-1]:
            missing.append(missing[-1].parent)
        for folder in reversed(missing):
            if not self.claim(folder) and not folder.is_dir():
                raise host_error(NotADirectoryError(errno.ENOTDIR, ""), folder, "make the folder")

    def claim(self, path: Path) -> bool:
        """Make the folder `path` by one atomic call; return False when that name exists already."""
        with translated(path, "make the folder"):
            try:
                self._primitives.mkdir(path)
            except FileExistsError:
                return False
        return True

    def remove(self, path: Path) -> None:
        """Remove one file or symbolic link (never what it points to)."""
        with translated(path, "remove"):
            self._primitives.unlink(path)

    def remove_folder(self, path: Path) -> None:
        """Remove one empty folder."""
        with translated(path, "remove the folder"):
            self._primitives.rmdir(path)

    def rename(self, path: Path, new_path: Path) -> None:
        """Give a file of a folder that nobody else sees another name there; nothing is forced to disk."""
        with translated(path, "rename"):
            self._primitives.rename(path, new_path)

    def make_executable(self, path: Path) -> None:
        """Let everybody who may read a file of ours run it as well."""
        with translated(path, "change the mode of"):
            fd = self._primitives.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                mode = stat.S_IMODE(self._primitives.fstat(fd).st_mode)
                self._primitives.chmod(fd, mode | (mode & _READABLE) >> 2)
            finally:
                self._primitives.drop(fd)

    def rename_folder(self, path: Path, new_path: Path) -> None:
        """Give a folder another name beside its old one; a symbolic link is renamed itself."""
        with translated(path, "rename"):
            self._primitives.rename(path, new_path)

    def _made_folders(self, folder: Path) -> list[Path]:
        missing = [above for above in (folder, *folder.parents) if not above.is_dir()]
        self.mkdir(folder)
        return missing

    def _name(self, temporary: Path, path: Path, *, exclusive: bool) -> None:
        if exclusive:
            with translated(path, "create"):
                self._primitives.link(temporary, path)
            self._discard(temporary)
            return
        with translated(path, "publish"):
            try:
                self._primitives.rename(temporary, path)
            except FileNotFoundError:  # a network file system may answer a repeated rename so, although it was done
                if not self.exists(path):
                    raise

    def _resolved(self, path: Path) -> Path:
        with translated(path, "resolve"):
            try:
                return path.resolve()
            except RuntimeError as cause:  # pathlib's word for a loop of links
                raise OSError(errno.ELOOP, "loop") from cause

    def _mode_of_file(self, target: Path) -> int | None:
        with translated(target, "look at"):
            try:
                found = self._primitives.stat(target)
            except FileNotFoundError:
                return None
            require_regular(found, target)
        return stat.S_IMODE(found.st_mode)

    @contextmanager
    def _staged(self, path: Path, folder: Path, *, mode: int | None = None) -> Generator[Replacement, None, None]:
        """Open a hidden temporary file that the block fills and publishes; it is gone in every path."""
        temporary = folder / f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}.tmp"
        with translated(path, "write"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            fd = self._primitives.open(temporary, flags, 0o666 if mode is None else mode)
        replacement = Replacement(self._primitives, path, fd, temporary)
        try:
            yield replacement
        except BaseException:
            replacement.abandon()
            self._discard(temporary)
            raise

    def _write_all(self, fd: int, data: bytes | memoryview) -> None:
        left = memoryview(data)
        while left:
            left = left[self._primitives.write(fd, left) :]

    def _sync_folder_of(self, path: Path, folder: Path) -> None:
        with translated(path, "force the folder to disk of", outcome=Outcome.FAILED):
            self._sync_folder(folder)

    def _sync_folder(self, folder: Path) -> None:
        fd = self._primitives.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._primitives.fsync(fd)
        finally:
            self._primitives.drop(fd)

    def _discard(self, temporary: Path) -> None:
        with suppress(OSError):
            self._primitives.unlink(temporary)

    def _torn_tail(self, fd: int, size: int) -> tuple[int, int] | None:
        begin = size
        while begin > 0:
            start = max(0, begin - _TAIL_BYTES)
            self._primitives.seek(fd, start)
            found = self._primitives.read(fd, begin - start).rfind(NEWLINE)
            if found >= 0:
                begin = start + found + 1
                break
            begin = start
        return (begin, size - begin) if begin < size else None


def _require_length(path: Path, copied: int, num_bytes: int) -> None:
    if copied != num_bytes:
        raise HostError(
            f"publish {path}: copied {copied} bytes of {num_bytes}",
            code="short_copy",
            fix="the source changed or could not be read whole; the next try copies it again",
        )


LOCAL = Files()
