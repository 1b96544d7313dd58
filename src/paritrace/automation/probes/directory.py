"""What the file system of one directory keeps of what runs rely on: each promise is tried out in a scratch folder."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from paritrace.automation.probes.probe import Probe, available, unavailable
from paritrace.errors import HostError, RequestError
from paritrace.process.mounts import kind_at

SCRATCH_PREFIX = ".paritrace-doctor-"
GIB = 2**30


def probe_directory(directory: Path) -> Iterator[Probe]:
    """Every probe of one directory; leaves nothing behind.

    Raises RequestError (Refused) when it is not a directory and HostError (Refused) when nothing can be made in it.
    """
    if not directory.is_dir():
        raise RequestError(f"{directory} is not a directory", code="no_directory", fix="make it, or name another")
    yield available("directory", str(directory.resolve()))
    yield probe_space(directory)
    yield probe_file_system(directory)
    try:
        scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=directory))
    except OSError as error:
        raise HostError(
            f"nothing can be made in {directory}: {error.strerror}",
            code="directory_not_writable",
            fix="give this user write permission there, or name another directory",
        ) from error
    try:
        for name, trial in TRIALS.items():
            yield _tried(name, trial, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def probe_space(directory: Path) -> Probe:
    usage = shutil.disk_usage(directory)
    return available("space", f"{usage.free / GIB:.1f} of {usage.total / GIB:.1f} GiB free")


def probe_file_system(directory: Path) -> Probe:
    """The type of the file system, by the longest mount point above the directory."""
    kind = kind_at(directory)
    return (
        available("file system", kind) if kind else unavailable("file system", "the machine does not list its mounts")
    )


def _tried(name: str, trial: Callable[[Path], str], scratch: Path) -> Probe:
    try:
        return available(name, trial(scratch))
    except (OSError, BrokenPromiseError) as error:
        return unavailable(name, str(error), fix="capture to a local disk and copy the finished run from there")


class BrokenPromiseError(Exception):
    """The file system answered without an error, but did not do what it says."""


def try_sync(scratch: Path) -> str:
    """A file and the folder that names it can both be forced to the disk."""
    path = scratch / "sync"
    with path.open("wb") as file:
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return "file and folder"


def try_replace(scratch: Path) -> str:
    """A rename over an existing file leaves the new content under the old name, and only that."""
    old, new = scratch / "name", scratch / "name.new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    new.replace(old)
    if old.read_bytes() != b"new" or new.exists():
        raise BrokenPromiseError("a rename over an existing file did not replace it")
    return "replaces an existing file"


def try_claim(scratch: Path) -> str:
    """Of two that make one folder, the second is told so."""
    (scratch / "claim").mkdir()
    try:
        (scratch / "claim").mkdir()
    except FileExistsError:
        return "the second to claim a folder is told"
    raise BrokenPromiseError("a folder could be made twice")


def try_lock(scratch: Path) -> str:
    """A lock held through one open file keeps out another."""
    path = scratch / "lock"
    with path.open("wb") as holder, path.open("wb") as other:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "excludes a second holder"
    raise BrokenPromiseError("two open files hold one exclusive lock")


def try_append(scratch: Path) -> str:
    """Bytes appended through two open files all arrive, one after the other."""
    path = scratch / "append"
    with path.open("ab", buffering=0) as first, path.open("ab", buffering=0) as second:
        first.write(b"one\n")
        second.write(b"two\n")
        first.write(b"three\n")
    if path.read_bytes() != b"one\ntwo\nthree\n":
        raise BrokenPromiseError("appended bytes overwrite each other")
    return "keeps all bytes in order"


TRIALS: dict[str, Callable[[Path], str]] = {
    "fsync": try_sync,
    "rename": try_replace,
    "claim": try_claim,
    "flock": try_lock,
    "append": try_append,
}
