"""An inference artifact as it lies on disk: whose it is, its events, what of it is committed (IN-1, IN-6, EV-19)."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.files import LOCAL, Files
from paritrace.inference.lines import Line, LineDecoder, events, scan
from paritrace.inference.records import AnyEvent, Artifact
from paritrace.runs.committed import read_index

ARTIFACT_NAME = "inference.jsonl"
LEASE_SUFFIX = ".lease"
_HEAD_BYTES = 1 << 20


class Place(Struct, frozen=True):
    """Where an artifact lies: its folder resolved, so that a symbolic link is never replaced by a file."""

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        return self.folder / self.name

    @property
    def lease(self) -> Path:
        return self.folder / f".{self.name}{LEASE_SUFFIX}"

    @property
    def identities(self) -> str:
        """The name of the file of identity rows."""
        return f".{self.name}.identities"


def place_of(path: Path) -> Place:
    """Return the place of an artifact that is named by itself or by its run directory."""
    resolved = (path / ARTIFACT_NAME if path.is_dir() else path).resolve()
    return Place(folder=resolved.parent, name=resolved.name)


class Events:
    """The events of an artifact in file order, read anew each time they are asked for; memory is one line.

    Iterating raises EvidenceError, Refused: `invalid_line` with its number, `torn_tail`; HostError of the disk.
    """

    def __init__(self, place: Place, *, files: Files = LOCAL) -> None:
        self.place = place
        self._files = files

    def __iter__(self) -> Iterator[AnyEvent]:
        return events(self.lines(), name=str(self.place.path))

    def numbered(self) -> Iterator[tuple[int, AnyEvent]]:
        """Yield the events with the numbers of their lines; raises as iterating."""
        for line in self.lines():
            for event in events((line,), name=str(self.place.path)):
                yield line.number, event

    def lines(self) -> Iterator[Line]:
        """Yield the lines, good or bad; those that the index gives up are left out."""
        index = read_index(self.place.folder, self.place.name, files=self._files)
        lost = () if index is None else tuple((one.offset, one.length) for one in index.losses)
        require_artifact(self.place, files=self._files)
        return scan(self._files.iter_chunks(self.place.path), decoder=LineDecoder(), lost=lost)


def head_of(place: Place, *, files: Files = LOCAL) -> Artifact:
    """Return the event that says whose an artifact is: the first of the file.

    Raises:
        EvidenceError: Refused: `no_artifact`, `not_an_artifact`, `invalid_line`.
    """
    require_artifact(place, files=files)
    with files.opened(place.path) as opened:
        first = next(events(scan(opened.chunks(0, _HEAD_BYTES), decoder=LineDecoder()), name=str(place.path)), None)
    if isinstance(first, Artifact):
        return first
    raise EvidenceError(
        f"{place.path} does not begin with the event that says whose it is",
        code="not_an_artifact",
        fix="name an artifact made by `paritrace infer init RUN`; other files are read by `infer import`",
    )


def require_artifact(place: Place, *, files: Files = LOCAL) -> None:
    """Refuse a place where no artifact is.

    Raises:
        EvidenceError: Refused, code `no_artifact`.
    """
    if not files.exists(place.path):
        raise EvidenceError(
            f"{place.path} is not there", code="no_artifact", fix="make one: `paritrace infer init RUN`"
        )


def require_no_writer(error: HostError, place: Place) -> HostError | EvidenceError:
    """Return the error of a lease that is held, in words about the artifact."""
    if error.code != "lock_timeout":
        return error
    return EvidenceError(
        f"{place.path} is being written by a live process",
        code="writer_lives",
        fix=f"append after it has ended; it holds {place.lease}",
    )
