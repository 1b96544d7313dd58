"""Files: durable replace, claim, append, bounded reads and locks, over one set of system calls."""

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError, Outcome
from paritrace.files.appender import NEWLINE, Appender
from paritrace.files.faults import host_error, translated
from paritrace.files.primitives import Primitives
from paritrace.files.replacement import Replacement

CHUNK_BYTES = 1 << 20  # reads are streamed in pieces of this size: memory stays bounded whatever the file
LOCK_WAIT_SECONDS = (
    30.0  # holders keep a lock for a few milliseconds; a thousand ranks starting at once stay below this
)
LOCK_POLL_SECONDS = 0.01  # short beside the holding time of a replace with two fsyncs
TEMPORARY_PREFIX = ".paritrace-"  # hidden: every reader ignores it
_TAIL_BYTES = 1 << 16


class Files:
    """File operations for one machine. Every method raises `HostError` with code and mend, never `OSError`."""

    def __init__(self, primitives: Primitives | None = None) -> None:
        self._primitives = primitives if primitives is not None else Primitives()

    # --- write -------------------------------------------------------------------------------------------------

    def replace(self, path: Path, data: bytes) -> None:
        """Put `data` under the name `path`: readers see the old bytes or the new ones, never a mixture (EV-10).

        A symbolic link is followed and its destination replaced; an existing file keeps its mode, a new one has 0666
        under the umask; missing parent folders are made.

        Raises:
            HostError: Refused, the old file is untouched and no temporary file is left; Failed only when the new
                content is in place but its folder could not be forced to disk.
        """
        with self.replacing(path) as replacement:
            replacement.write(data)

    @contextmanager
    def replacing(self, path: Path) -> Iterator[Replacement]:
        """Put what is written inside the block under the name `path`, as `replace` does, in bounded memory.

        Nothing is put there when the block raises; the old file is untouched then.
        """
        target = self._resolved(path)
        self.mkdir(target.parent)
        mode = self._mode_of_file(target)
        with self._staged(path, target.parent) as replacement:
            yield replacement
            replacement.finish(mode=mode)
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

    def write_once(self, path: Path, data: bytes) -> bool:
        """Write a content-addressed file; return False when a file of that name and size is there already."""
        with suppress(HostError):
            if self.size(path) == len(data):
                return False
        self.replace(path, data)
        return True

    def append_new(self, path: Path) -> Appender:
        """Create `path` for appending.

        Raises:
            HostError: Refused, code `already_there` when the name exists (one writer per file).
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
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
                raise host_error(NotADirectoryError(20, ""), folder, "make the folder")

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

    def rename_folder(self, path: Path, new_path: Path) -> None:
        """Give a folder another name beside its old one; a symbolic link is renamed itself."""
        with translated(path, "rename"):
            self._primitives.rename(path, new_path)

    # --- read --------------------------------------------------------------------------------------------------

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

    def iter_chunks(self, path: Path, *, length: int | None = None, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """Yield the bytes of a regular file in order, at most `length` of them; memory is one chunk."""
        with translated(path, "read"):
            fd = self._primitives.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            with translated(path, "read"):
                self._require_regular(self._primitives.fstat(fd), path)
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

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        with translated(path, "look at"):
            return self._primitives.stat(path).st_size

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

    # --- locks -------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self, path: Path, *, clock: Clock = SYSTEM, wait_seconds: float = LOCK_WAIT_SECONDS) -> Iterator[None]:
        """Hold the kernel lock of the file `path`; the kernel lets go when its holder dies, so none is ever stale.

        Raises:
            HostError: Refused, code `lock_timeout` after `wait_seconds`, `no_locks` where there are none.
        """
        deadline = clock.monotonic_ns() + int(wait_seconds * 1e9)
        fd = self._lock_file(path)
        try:
            while not self._try_lock(fd, path):
                if clock.monotonic_ns() >= deadline:
                    raise HostError(
                        f"{path} stayed locked for {wait_seconds:g} s",
                        code="lock_timeout",
                        fix="another process holds it: see which (fuser, lsof), then try again",
                    )
                clock.sleep(LOCK_POLL_SECONDS)
            yield
        finally:
            self._primitives.drop(fd)

    def _lock_file(self, path: Path) -> int:
        with translated(path, "open the lock"):
            return self._primitives.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)

    def _try_lock(self, fd: int, path: Path) -> bool:
        with translated(path, "lock"):
            try:
                self._primitives.lock(fd)
            except BlockingIOError:
                return False
        return True

    # --- parts of the above ------------------------------------------------------------------------------------

    def _resolved(self, path: Path) -> Path:
        with translated(path, "resolve"):
            try:
                return path.resolve()
            except RuntimeError as cause:  # pathlib's word for a loop of links
                raise OSError(40, "loop") from cause

    def _mode_of_file(self, target: Path) -> int | None:
        with translated(target, "look at"):
            try:
                found = self._primitives.stat(target)
            except FileNotFoundError:
                return None
            self._require_regular(found, target)
        return stat.S_IMODE(found.st_mode)

    def _require_regular(self, found: os.stat_result, path: Path) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise HostError(
                f"{path} is not a regular file", code="not_a_file", fix="name a regular file, not a folder or device"
            )

    @contextmanager
    def _staged(self, path: Path, folder: Path) -> Iterator[Replacement]:
        """Open a hidden temporary file that the block fills and publishes; it is gone in every path."""
        temporary = folder / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp"
        with translated(path, "write"):
            fd = self._primitives.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
        replacement = Replacement(self._primitives, path, fd, temporary)
        try:
            yield replacement
        except BaseException:
            replacement.abandon()
            self._discard(temporary)
            raise

    def _write_all(self, fd: int, data: bytes) -> None:
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


LOCAL = Files()
