"""The runs below a folder: what each says of itself, which share an id or a job, what cannot be read (EV-16, EV-21)."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.errors import HostError, ParitraceError
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.process.identity import liveness
from paritrace.runs.documents import parse_envelope
from paritrace.runs.envelope import ENVELOPE_NAME, SESSIONS_FOLDER, Envelope, Role, Session, SessionStatus
from paritrace.runs.pack import peek_envelope
from paritrace.runs.removal import REMOVED_PREFIX
from paritrace.runs.status import RECORDED, seen_status
from paritrace.runs.views import session_view

FORMAT = "paritrace-catalog"
VERSION = "1.0"
MAX_DEPTH = 4  # folders below the one that was named: enough for TEAM/EXPERIMENT/RUN, bounded on a whole disk
ARCHIVE_SUFFIX = ".tar.zst"


class RunLine(Struct, frozen=True):
    """One run as `runs ls` shows it; `statuses` counts the sessions by what a reader may say of them."""

    path: str
    run_id: str
    title: str | None
    tags: tuple[str, ...]
    created_at: str
    num_sessions: int
    num_attachments: int
    statuses: dict[str, int]
    job_ids: tuple[str, ...]
    archive: bool


class Unreadable(Struct, frozen=True):
    path: str
    code: str
    message: str


class Catalog(Struct, frozen=True):
    """`same_run_id`: paths that name one run id (neither is chosen); `same_job`: run paths of one job (not merged)."""

    format: str
    version: str
    folder: str
    runs: tuple[RunLine, ...]
    unreadable: tuple[Unreadable, ...]
    same_run_id: dict[str, tuple[str, ...]]
    same_job: dict[str, tuple[str, ...]]
    cut_off_removals: tuple[str, ...]
    not_entered: tuple[str, ...]


def catalog(folder: Path, *, files: Files = LOCAL) -> Catalog:
    """List the runs in and below a folder, to a bounded depth; links are not followed.

    Raises:
        HostError: Refused: the folder itself cannot be listed.
    """
    found = _Found(files)
    if files.exists(folder / ENVELOPE_NAME):
        found.run(folder)
    else:
        found.folder(folder, depth=0)
    runs = tuple(sorted(found.runs, key=lambda line: (line.created_at, line.path)))
    return Catalog(
        format=FORMAT,
        version=VERSION,
        folder=str(folder),
        runs=runs,
        unreadable=tuple(found.unreadable),
        same_run_id=_shared({line.path: (line.run_id,) for line in runs}),
        same_job=_shared({line.path: line.job_ids for line in runs}),
        cut_off_removals=tuple(found.removals),
        not_entered=tuple(found.not_entered),
    )


class _Found:
    """Collects what a walk meets; damage is listed, never raised."""

    def __init__(self, files: Files) -> None:
        self.runs: list[RunLine] = []
        self.unreadable: list[Unreadable] = []
        self.removals: list[str] = []
        self.not_entered: list[str] = []
        self._files = files

    def folder(self, folder: Path, *, depth: int) -> None:
        for path in self._files.list_all(folder):
            try:
                self._entry(path, depth=depth)
            except HostError as error:
                self.unreadable.append(Unreadable(str(path), error.code, error.message))

    def run(self, path: Path) -> None:
        try:
            data = self._files.read(path / ENVELOPE_NAME)
            envelope = parse_envelope(data, name=str(path / ENVELOPE_NAME)).envelope
        except ParitraceError as error:
            self.unreadable.append(Unreadable(str(path), error.code, error.message))
            return
        folder = path / SESSIONS_FOLDER
        views = [session_view(row, folder=folder / row.session_id, files=self._files) for row in envelope.sessions]
        statuses = [RECORDED if view.seen.words == RECORDED else view.status.value for view in views]
        self.runs.append(_line(path, envelope, statuses, archive=False))

    def _entry(self, path: Path, *, depth: int) -> None:
        if path.name.startswith(REMOVED_PREFIX):
            self.removals.append(str(path))
        elif path.name.startswith("."):
            return
        elif self._files.is_regular(path):
            if path.name.endswith(ARCHIVE_SUFFIX):
                self._archive(path)
        elif not self._files.is_folder(path):
            return
        elif self._files.exists(path / ENVELOPE_NAME):
            self.run(path)
        elif depth < MAX_DEPTH:
            self.folder(path, depth=depth + 1)
        else:
            self.not_entered.append(str(path))

    def _archive(self, path: Path) -> None:
        """List an archive of a run; other archives are none of our business, damaged ones of ours are told."""
        try:
            envelope = peek_envelope(path, files=self._files).envelope
        except ParitraceError as error:
            self.unreadable.append(Unreadable(str(path), error.code, error.message))
            return
        self.runs.append(_line(path, envelope, [_packed_status(row) for row in envelope.sessions], archive=True))


def _packed_status(row: Session) -> str:
    """Return the status of a session in an archive, whose receipts lie behind everything that was packed."""
    if row.status is SessionStatus.COMPLETED and row.role is Role.RECORD:
        return RECORDED
    if row.status is not SessionStatus.RUNNING:
        return row.status.value
    return seen_status(row, receipt=None, damage="", liveness=liveness(row.process)).status.value


def _line(path: Path, envelope: Envelope, statuses: list[str], *, archive: bool) -> RunLine:
    jobs = {row.job_id for row in envelope.sessions if not isinstance(row.job_id, Gap)}
    return RunLine(
        path=str(path),
        run_id=envelope.run_id,
        title=envelope.title,
        tags=envelope.tags,
        created_at=envelope.created_at,
        num_sessions=len(statuses),
        num_attachments=len(envelope.attachments),
        statuses={status: statuses.count(status) for status in sorted(set(statuses))},
        job_ids=tuple(sorted(jobs)),
        archive=archive,
    )


def _shared(of: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return each value that several paths have, with those paths."""
    paths: dict[str, list[str]] = defaultdict(list)
    for path, value in _pairs(of):
        paths[value].append(path)
    return {value: tuple(found) for value, found in sorted(paths.items()) if len(found) > 1}


def _pairs(of: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    for path, values in of.items():
        for value in values:
            yield path, value
