"""The system calls behind every file operation, one method each, so that tests can make the Nth one fail."""

import errno
import fcntl
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

_HERE, _NO_REPLACE = -100, 1  # AT_FDCWD and RENAME_NOREPLACE of the kernel's interface
_NOT_OFFERED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


class Primitives:
    """One system call per method; decides nothing. `paritrace.testing.faults` overrides `before`."""

    def before(self, operation: str, path: str) -> None:
        """Called before each operation that changes something; a faulty subclass raises here."""

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        self.before("open" if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR) else "open_read", str(path))
        return os.open(path, flags | os.O_CLOEXEC, mode)

    def write(self, fd: int, data: memoryview) -> int:
        self.before("write", str(fd))
        return os.write(fd, data)

    def read(self, fd: int, num_bytes: int) -> bytes:
        self.before("read", str(fd))
        return os.read(fd, num_bytes)

    def seek(self, fd: int, offset: int) -> None:
        os.lseek(fd, offset, os.SEEK_SET)

    def truncate(self, fd: int, num_bytes: int) -> None:
        self.before("truncate", str(fd))
        os.ftruncate(fd, num_bytes)

    def fsync(self, fd: int) -> None:
        self.before("fsync", str(fd))
        os.fsync(fd)

    def close(self, fd: int) -> None:
        """Close `fd`. The descriptor is gone even when this raises, so nobody closes twice."""
        try:
            self.before("close", str(fd))
        finally:
            os.close(fd)

    def drop(self, fd: int) -> None:
        """Close a descriptor through which nothing was written: there is nothing to fail."""
        os.close(fd)

    def chmod(self, fd: int, mode: int) -> None:
        self.before("chmod", str(fd))
        os.fchmod(fd, mode)

    def rename(self, source: Path, target: Path) -> None:
        self.before("rename", str(target))
        os.rename(source, target)

    def rename_new(self, source: Path, target: Path) -> None:
        """Rename in one step and only where nothing has the name `target`.

        `rename` would silently take the place of an empty folder. Where the file system knows no such call, `target` is
        claimed by making it, which fails when it exists.
        """
        self.before("rename_new", str(target))
        if not _rename_without_replacing(source, target):
            os.mkdir(target)
            os.rename(source, target)

    def sync_file_system(self, fd: int) -> None:
        """Force everything written to the file system of `fd` to disk, in one call for any number of files."""
        self.before("sync_file_system", str(fd))
        if _libc().syncfs(fd) != 0:
            raise _libc_error()

    def link(self, source: Path, target: Path) -> None:
        self.before("link", str(target))
        os.link(source, target, follow_symlinks=False)

    def unlink(self, path: Path) -> None:
        self.before("unlink", str(path))
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        self.before("mkdir", str(path))
        os.mkdir(path)

    def rmdir(self, path: Path) -> None:
        self.before("rmdir", str(path))
        os.rmdir(path)

    def stat(self, path: Path) -> os.stat_result:
        return os.stat(path)

    def lstat(self, path: Path | str) -> os.stat_result:
        return os.lstat(path)

    def fstat(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def names(self, path: Path) -> list[str]:
        return os.listdir(path)

    def lock(self, fd: int) -> None:
        """Take the exclusive kernel lock of `fd` or raise `BlockingIOError` at once."""
        self.before("lock", str(fd))
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def unlock(self, fd: int) -> None:
        """Let go of the lock, also for a forked child that shares the open file."""
        fcntl.flock(fd, fcntl.LOCK_UN)

    def free_bytes(self, path: Path) -> int:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize


@cache
def _libc() -> "ctypes.CDLL":
    """The C library, for two calls that Python does not offer: renameat2, syncfs."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _rename_without_replacing(source: Path, target: Path) -> bool:
    """Return False where neither the C library nor the file system offers the call (NFS, old kernels)."""
    try:
        call = _libc().renameat2
    except AttributeError:
        return False
    if call(_HERE, os.fsencode(source), _HERE, os.fsencode(target), _NO_REPLACE) == 0:
        return True
    import ctypes

    if ctypes.get_errno() in _NOT_OFFERED:
        return False
    raise _libc_error()


def _libc_error() -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
