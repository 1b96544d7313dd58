"""What the tools may name: keys of the shelf, and paths inside the folders that were given; nothing else (AU-12)."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from paritrace.errors import EvidenceError, RequestError
from paritrace.files import Files
from paritrace.mcp.confined import confined, is_inside
from paritrace.reports.keeping import MANIFEST, NAMES
from paritrace.reports.shelf import KEY_DIGITS, Result, Shelf, key_of, open_shelved, shelf_of
from paritrace.runs.catalog import ARCHIVE_SUFFIX
from paritrace.runs.envelope import ENVELOPE_NAME
from paritrace.runs.reading import Run, open_run
from paritrace.store.recognising import is_store


class Places:
    """The folders served, with what was found in them. Tools ask from several threads; a walk changes one name."""

    def __init__(self, folders: Sequence[Path], *, scratch: Path) -> None:
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))
        self.scratch = scratch
        self.files: Files = confined(self.folders, scratch=scratch)
        self._paths: dict[str, Path] = {}

    def shelves(self) -> tuple[Shelf, ...]:
        """Looks again at what there is, folder by folder."""
        shelves = tuple(shelf_of(folder, files=self.files) for folder in self.folders)
        self._paths = {key_of(path): path for shelf in shelves for path in _paths_of(shelf)}
        return shelves

    def run(self, name: str, /) -> AbstractContextManager[Run]:
        """Opens a run; the caller closes it.

        Raises:
            RequestError: Refused: `outside_folders`, `no_such_evidence`.
            EvidenceError: Refused: `not_a_run`, and what a damaged run says.
        """
        path = self._path(name)
        if path.name == ENVELOPE_NAME:
            path = path.parent
        whole = path.name.endswith(ARCHIVE_SUFFIX) or self.files.exists(path / ENVELOPE_NAME)
        if not whole or is_store(path, files=self.files):
            raise EvidenceError(
                f"{path} is no run directory and no archive of a run",
                code="not_a_run",
                fix="list_evidence with kind `run` lists the runs",
            )
        return open_run(path, files=self.files, scratch=self.scratch)

    def result(self, name: str, /) -> Result:
        """Opens a kept comparison: its folder, its document, or the run that was its candidate.

        Raises:
            RequestError: Refused: `outside_folders`, `no_such_evidence`, `no_result`.
            EvidenceError: Refused, `damaged_result`.
        """
        path = self._path(name)
        of_folder = path.name in (MANIFEST, *NAMES.values()) and self.files.exists(path.parent / MANIFEST)
        return open_shelved(path.parent if of_folder else path, files=self.files)

    def _path(self, name: str) -> Path:
        if len(name) == KEY_DIGITS and "/" not in name:
            if name not in self._paths:
                self.shelves()
            if name in self._paths:
                return self._paths[name]
        return self._inside(name)

    def _inside(self, name: str) -> Path:
        """A path as it stands, or below the folder in which it exists; others are refused without a look."""
        if "\0" in name:
            raise _unknown(name)
        inside = [path for folder in self.folders if is_inside(path := folder / name, self.folders)]
        if not inside:
            raise RequestError(
                f"{name} is outside of the folders that this server was given",
                code="outside_folders",
                fix="name a key from list_evidence or a path in one of the folders; others need a server of their own",
            )
        for path in inside:
            if self.files.exists(path):
                return path
        raise _unknown(name)


def _unknown(name: str) -> RequestError:
    return RequestError(
        f"there is no {name!r} in the folders that this server was given",
        code="no_such_evidence",
        fix="list_evidence lists runs and comparisons with their keys",
    )


def _paths_of(shelf: Shelf) -> list[Path]:
    return [
        *(Path(one.line.path) for one in shelf.runs),
        *(Path(one.path) for one in shelf.comparisons),
        *(Path(one.path) for one in shelf.checks),
        *(Path(one.path) for one in shelf.troubles),
    ]
