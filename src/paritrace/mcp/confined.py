"""Files that reach only some folders: outside of them nothing exists, and inside them nothing is written (AU-12)."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from paritrace.files import Files, Primitives

ON_PATHS = frozenset({"open", "rename", "rename_new", "link", "unlink", "mkdir", "rmdir"})  # what changes a name
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def is_inside(path: Path, folders: Sequence[Path], /) -> bool:
    """Returns whether a path, with its symbolic links followed, lies in or is one of the (resolved) folders."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # a loop of links leads nowhere
        return False
    return any(real == folder or folder in real.parents for folder in folders)


class ConfinedPrimitives(Primitives):
    """System calls on paths: reading inside `folders` and `scratch`, writing inside `scratch` alone."""

    def __init__(self, folders: Sequence[Path], *, scratch: Path) -> None:
        self._scratch = scratch.resolve()
        self._readable = (*(folder.resolve() for folder in folders), self._scratch)

    def before(self, operation: str, path: str) -> None:
        """Refuses what changes something outside of the scratch folder; what is open for writing was let through."""
        if operation in ON_PATHS and not is_inside(Path(path).parent, (self._scratch,)):
            raise OSError(errno.EROFS, "read-only", path)

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if not flags & WRITES:
            self._require_readable(path)
        return super().open(path, flags, mode)

    def stat(self, path: Path) -> os.stat_result:
        self._require_readable(path)
        return super().stat(path)

    def lstat(self, path: Path | str) -> os.stat_result:
        itself = Path(path)
        if itself.absolute() not in self._readable:  # a link is looked at where it stands, not where it leads
            self._require_readable(itself.parent)
        return super().lstat(path)

    def names(self, path: Path) -> list[str]:
        self._require_readable(path)
        return super().names(path)

    def _require_readable(self, path: Path) -> None:
        if not is_inside(path, self._readable):
            raise FileNotFoundError(errno.ENOENT, "outside of the folders that were given", str(path))


def confined(folders: Sequence[Path], /, *, scratch: Path) -> Files:
    """Returns files that read in these folders and in `scratch`, and write in `scratch` alone."""
    return Files(ConfinedPrimitives(folders, scratch=scratch))
