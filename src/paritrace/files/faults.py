"""What a failed system call means for the owner of the machine: one `HostError` with a mend per errno."""

import errno
import os
from pathlib import Path
from types import TracebackType

from paritrace.errors import HostError, Outcome

# errno -> (code, mend). Codes have an entry in docs/errors.md.
_MENDS: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("disk_full", "free space on that file system or choose another place, then try again"),
    errno.EDQUOT: ("disk_full", "your quota is used up: free space or choose another place, then try again"),
    errno.EFBIG: ("file_too_large", "raise the file size limit (ulimit -f) or lower what is captured"),
    errno.EIO: ("io_error", "the device reports an I/O error: check its health, choose another place"),
    errno.EROFS: ("read_only", "the file system is mounted read-only: choose another place"),
    errno.EACCES: ("not_permitted", "check owner and mode of the path, or choose another place"),
    errno.EPERM: ("not_permitted", "check owner, mode and attributes of the path, or choose another place"),
    errno.ENOENT: ("not_found", "check the path; the file or one of its folders does not exist"),
    errno.ENOTDIR: ("not_a_folder", "check the path; a part of it is a file, not a folder"),
    errno.EISDIR: ("not_a_file", "check the path; it is a folder, not a file"),
    errno.EEXIST: ("already_there", "remove it or choose another name"),
    errno.ENOTEMPTY: ("already_there", "the folder is not empty: choose another name"),
    errno.EXDEV: ("cross_device", "the target lies on another file system than its folder: choose another place"),
    errno.EBUSY: ("busy", "the target is a mount point or in use: choose another place"),
    errno.ELOOP: ("symlink_loop", "the path goes through a loop of symbolic links: mend the links"),
    errno.ENAMETOOLONG: ("name_too_long", "choose a shorter name"),
    errno.EMFILE: ("too_many_open_files", "raise the limit of open files (ulimit -n)"),
    errno.ENFILE: ("too_many_open_files", "the machine is out of open files: close some programs"),
    errno.ENOLCK: ("no_locks", "the file system offers no locks: choose a run directory on a local disk"),
    errno.ENOTSUP: ("not_supported", "the file system does not support this operation: choose another place"),
    errno.ESTALE: ("stale_handle", "the shared file system lost the file: list the folder again, then try again"),
}
_UNKNOWN = ("file_error", "see the system's message; check the path and the file system")


def host_error(cause: OSError, path: Path | str, doing: str, *, outcome: Outcome = Outcome.REFUSED) -> HostError:
    """Return the error for `cause` met while `doing` something to `path`; `outcome` says what it left behind."""
    number = cause.errno if cause.errno is not None else 0
    code, fix = _MENDS.get(number, _UNKNOWN)
    said = os.strerror(number) if number else str(cause)
    return HostError(f"{doing} {os.fspath(path)}: {said}", code=code, fix=fix, outcome=outcome)


class _Translated:
    """A class, since a generator costs three times as much, and there is one around every system call."""

    __slots__ = ("_doing", "_outcome", "_path")

    def __init__(self, path: Path | str, doing: str, outcome: Outcome) -> None:
        self._path = path
        self._doing = doing
        self._outcome = outcome

    def __enter__(self) -> None:
        """Nothing is to be prepared."""

    def __exit__(self, kind: type[BaseException] | None, cause: BaseException | None, tb: TracebackType | None) -> None:
        if isinstance(cause, OSError):
            raise host_error(cause, self._path, self._doing, outcome=self._outcome) from cause


def translated(path: Path | str, doing: str, *, outcome: Outcome = Outcome.REFUSED) -> _Translated:
    """Turn an `OSError` of the block into a `HostError`."""
    return _Translated(path, doing, outcome)
