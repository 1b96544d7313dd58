"""Files by which the ranks of a run tell each other that a black box was written: `RUN/triggers/` (CA-36).

No collective of ours and no message: a name in a folder that all ranks see. It needs a file system that they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paritrace.errors import HostError
from paritrace.files import Files

WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Sign:
    """A name somebody else left. `step` is None for one that no rank of ours left."""

    name: str
    step: int | None
    window: bool


class Signs:
    """The folder of one run, as one session sees it. Nothing here raises: what fails is told by the result."""

    def __init__(self, folder: Path, *, session_id: str, files: Files) -> None:
        self._folder = folder
        self._own = f"{session_id}."
        self._files = files
        self._known: set[str] = set()
        self._changed_ns = -1
        self._again = False

    def open(self) -> None:
        """Make the folder; what lies in it is of an earlier incarnation and says nothing.

        Raises:
            HostError: Refused: the disk refuses.
        """
        self._files.mkdir(self._folder)
        self._known = {path.name for path in self._files.list(self._folder)}

    def leave(self, step: int, cause: str, *, window: bool) -> bool:
        """Tell the others; whether that was possible."""
        name = f"{self._own}{step}.{cause}{f'.{WINDOW}' if window else ''}"
        try:
            self._files.append_new(self._folder / name).close()
        except HostError as error:
            return error.code == "already_there"
        return True

    def look(self) -> list[Sign]:
        """What others left since the last look: one stat of the folder, and a listing when it has changed.

        It is listed once more after a change: two names made within one tick of its clock look like one change.
        """
        try:
            changed_ns = self._files.modified_ns(self._folder)
            if changed_ns == self._changed_ns and not self._again:
                return []
            self._again = changed_ns != self._changed_ns
            self._changed_ns = changed_ns
            names = [path.name for path in self._files.list(self._folder)]
        except HostError:  # it was removed, or the file system is away: the others cannot be heard
            return []
        fresh = [name for name in names if name not in self._known]
        self._known.update(fresh)
        return [sign_of(name) for name in fresh if not name.startswith(self._own)]


def sign_of(name: str) -> Sign:
    """What a name says: `SESSION.STEP.CAUSE[.window]` of a rank, or anything else, which a person left."""
    parts = name.split(".")
    steps = [int(part) for part in parts[1:-1] if part.isascii() and part.isdecimal() and len(part) < 19]
    left_by_rank = name.startswith("rank-") and len(steps) >= 1
    return Sign(name, steps[-1] if left_by_rank else None, WINDOW in parts)
