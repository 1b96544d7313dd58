"""What a resident session's directory says of it, and what its coordinator says now where it lives; only read (SU-10).

Everything but the state of each rank at this moment is read from files, so that a session that is over shows the same.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import DecodeError, Struct
from msgspec import json as msgspec_json

from paritrace.clock import rfc3339
from paritrace.errors import HostError, ParitraceError, RequestError
from paritrace.files import LOCAL
from paritrace.process.identity import Life, liveness
from paritrace.reports.shelf import key_of
from paritrace.runs.envelope import ENVELOPE_NAME
from paritrace.session.checkpoint_records import Manifest
from paritrace.session.checkpoint_survey import candidates
from paritrace.session.client import Client
from paritrace.session.commands import Body, Reason, Reply
from paritrace.session.configuration import KeptConfig
from paritrace.session.directory import CAPTURES, FAILURES, SessionRecord, config_path
from paritrace.session.failure import FailureReport
from paritrace.session.journal import Journal, Line
from paritrace.session.kept_records import PREVIEW_RECORD, PREVIEWS, PreviewRecord
from paritrace.session.opening import read_journal, read_session
from paritrace.session.replaying import InFlight, replayed, reply_of
from paritrace.session.segments import Segment, segments_of
from paritrace.session.states import RankState
from paritrace.session.status import Status

Record = TypeVar("Record")

STATUS_SECONDS = 2.0  # a coordinator answers within milliseconds; a page does not wait for one that is stopped
MOST_ROWS = 200  # of each table, the newest ones: the journal has all
MOST_FILES = 50  # of the latest preview
DOCUMENT_BYTES = 16 << 20  # of a report or record; the largest failure report holds a log's end for each rank
TOLD = frozenset({"exit", "finding", "warning"})  # what the coordinator saw by itself


class CommandRow(Struct, frozen=True):
    """A command as the journal tells it; without a result it is under way, or was when its coordinator ended."""

    sequence: int
    at: str
    id: str
    kind: str
    body: str
    result: str | None = None
    step: int | None = None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()


class CheckpointRow(Struct, frozen=True):
    """`why_not`: what is wrong with a folder that is no checkpoint."""

    name: str
    step: int | None = None
    made: str = ""
    config_revision: int | None = None
    num_files: int = 0
    num_bytes: int = 0
    why_not: str = ""


class CaptureRow(Struct, frozen=True):
    """`key`: of its page, "" where there is no run."""

    name: str
    key: str


class ToldRow(Struct, frozen=True):
    """A line of the journal about something that the coordinator saw: an exit, a finding, a warning."""

    sequence: int
    at: str
    what: str
    rank: int | None
    words: str


class SessionShown(Struct, frozen=True):
    """A session on a page. `left_out`: in words, what is in the files and not here."""

    path: str
    record: SessionRecord
    owner: str  # alive, gone or not_checkable_here
    owner_words: str
    status: Status | None  # None: nobody answers, and `status_words` says why
    status_words: str
    generation: int
    step: int | None
    state: RankState | None  # the last that all ranks agreed on, by the journal
    config_revision: int
    config: KeptConfig | None  # of that revision
    run_from: int | None  # the first step of the run under way
    closed: bool
    in_flight: tuple[InFlight, ...]
    commands: tuple[CommandRow, ...]
    segments: tuple[Segment, ...]
    checkpoints: tuple[CheckpointRow, ...]
    preview: PreviewRecord | None
    num_previews: int
    captures: tuple[CaptureRow, ...]
    failures: tuple[FailureReport, ...]
    told: tuple[ToldRow, ...]
    left_out: tuple[str, ...]

    @property
    def is_live(self) -> bool:
        """Whether somebody may still write to its files."""
        return self.owner != Life.GONE.value

    @property
    def why_no_commands(self) -> str:
        """Why nobody takes commands of it now, "" where they are taken."""
        if self.closed:
            return "the session is closed"
        if self.status is None:
            return self.status_words
        return "" if self.status.control == "full" else f"control is {self.status.control}"


def session_shown(directory: Path, journal: Journal | None = None, /) -> SessionShown:
    """Return a session as it is now; its journal is read where it is not given.

    Raises:
        RequestError: Refused, `not_a_session`.
        EvidenceError: Refused: another program's journal, or a newer one's.
        HostError: Refused: a file cannot be read.
    """
    record = read_session(directory)
    journal = read_journal(directory) if journal is None else journal
    known = replayed(journal)
    owner = liveness(record.owner)
    status, words = _asked(directory) if owner.life is Life.ALIVE else (None, owner.why)
    left_out = [f"{one.num_bytes:,} bytes of the journal at offset {one.offset:,} are no line" for one in journal.torn]
    failures, previews = _failures(directory, left_out), _previews(directory)
    return SessionShown(
        path=str(directory),
        record=record,
        owner=owner.life.value,
        owner_words=owner.why,
        status=status,
        status_words=words,
        generation=known.generation,
        step=known.step,
        state=_last_state(journal),
        config_revision=known.config_revision,
        config=_config(directory, known.config_revision, left_out),
        run_from=_run_from(journal),
        closed=known.closed,
        in_flight=known.in_flight,
        commands=_newest(_commands(journal), "commands", left_out),
        segments=_newest(segments_of(journal.lines), "segments", left_out),
        checkpoints=_newest(_checkpoints(directory), "checkpoints", left_out),
        preview=_preview(previews, left_out),
        num_previews=len(previews),
        captures=_newest(_captures(directory), "captures", left_out),
        failures=failures,
        told=_newest(tuple(_told(journal)), "exits, findings and warnings", left_out),
        left_out=tuple(left_out),
    )


def preview_file(directory: Path, generation: int, name: str, /) -> Path:
    """Return a file of a preview that its record names; never one that lies elsewhere.

    Raises:
        RequestError: Refused, `no_such_page`.
    """
    folder = directory / PREVIEWS / str(generation)
    record = _decoded(folder / PREVIEW_RECORD, PreviewRecord, [])
    path = folder / name
    named = record is not None and name in record.files
    if not named or not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise RequestError("this preview has no such file", code="no_such_page", fix="begin at the session's page")
    return path


def _asked(directory: Path) -> tuple[Status | None, str]:
    try:
        with Client(directory, answers_within_seconds=STATUS_SECONDS) as client:
            return client.status(), ""
    except ParitraceError as error:
        return None, error.message


def _last_state(journal: Journal) -> RankState | None:
    for line in reversed(journal.lines):
        if line.what == "failure":
            return RankState.ERROR
        if line.what == "transition":
            return _state(line.facts.get("after"))
    return None


def _config(directory: Path, revision: int, left_out: list[str]) -> KeptConfig | None:
    path = config_path(directory, revision)
    return _decoded(path, KeptConfig, left_out) if LOCAL.exists(path) else None


def _run_from(journal: Journal) -> int | None:
    for line in reversed(journal.lines):
        if line.what == "run" and line.facts.get("event") == "admitted":
            step = line.facts.get("step")
            return step if isinstance(step, int) else None
    return None


def _state(value: object) -> RankState | None:
    try:
        return RankState(str(value))
    except ValueError:
        return None


def _commands(journal: Journal) -> tuple[CommandRow, ...]:
    replies = {found.command_id: found for found in _replies(journal.lines)}
    return tuple(
        _command(line, replies.get(str(line.facts.get("id")))) for line in journal.lines if line.what == "command"
    )


def _replies(lines: Sequence[Line]) -> Iterator[Reply]:
    for line in lines:
        found = reply_of(line) if line.what == "result" else None
        if found is not None:
            yield found


def _command(line: Line, reply: Reply | None) -> CommandRow:
    body: Body = line.facts.get("body") or {}
    row = CommandRow(
        sequence=line.sequence,
        at=rfc3339(line.unix_ns),
        id=str(line.facts.get("id", "")),
        kind=str(line.facts.get("kind", "")),
        body=msgspec_json.encode(body).decode() if body else "",
    )
    if reply is None:
        return row
    return CommandRow(
        row.sequence, row.at, row.id, row.kind, row.body, reply.result.value, reply.step, reply.reasons, reply.notes
    )


def _told(journal: Journal) -> Iterator[ToldRow]:
    for line in journal.lines:
        if line.what in TOLD:
            rank = line.facts.get("rank")
            words = ": ".join(str(line.facts[name]) for name in ("finding", "words") if line.facts.get(name))
            yield ToldRow(
                line.sequence, rfc3339(line.unix_ns), line.what, rank if isinstance(rank, int) else None, words
            )


def _checkpoints(directory: Path) -> tuple[CheckpointRow, ...]:
    rows: list[tuple[int, CheckpointRow]] = []
    for one in candidates(directory):
        match one.manifest:
            case Manifest() as manifest:
                row = CheckpointRow(
                    name=one.name,
                    step=manifest.origin.step,
                    made=rfc3339(manifest.made_unix_ns),
                    config_revision=manifest.origin.config_revision,
                    num_files=len(manifest.files),
                    num_bytes=manifest.num_bytes,
                )
                rows.append((manifest.made_unix_ns, row))
            case str(why):
                rows.append((0, CheckpointRow(one.name, why_not=why)))
    return tuple(row for _, row in sorted(rows, key=lambda pair: pair[0]))


def _captures(directory: Path) -> tuple[CaptureRow, ...]:
    return tuple(
        CaptureRow(path.name, key_of(path) if LOCAL.exists(path / ENVELOPE_NAME) else "")
        for path in _listed(directory / CAPTURES)
        if path.is_dir()
    )


def _failures(directory: Path, left_out: list[str]) -> tuple[FailureReport, ...]:
    """The reports, the latest first."""
    found = [path for path in _listed(directory / FAILURES) if path.stem.isdecimal()]
    newest = sorted(found, key=lambda path: int(path.stem), reverse=True)
    if len(newest) > MOST_ROWS:
        left_out.append(f"showing {MOST_ROWS:,} of {len(newest):,} failures")
    reports = (_decoded(path, FailureReport, left_out) for path in newest[:MOST_ROWS])
    return tuple(one for one in reports if one is not None)


def _previews(directory: Path) -> tuple[Path, ...]:
    """The folders of previews that are whole, in their order."""
    found = [path for path in _listed(directory / PREVIEWS) if path.name.isdecimal()]
    return tuple(sorted(found, key=lambda path: int(path.name)))


def _preview(previews: tuple[Path, ...], left_out: list[str]) -> PreviewRecord | None:
    if not previews:
        return None
    found = _decoded(previews[-1] / PREVIEW_RECORD, PreviewRecord, left_out)
    if found is not None and len(found.files) > MOST_FILES:
        left_out.append(f"showing {MOST_FILES:,} of {len(found.files):,} files of the latest preview")
    return found


def _decoded(path: Path, kind: type[Record], left_out: list[str]) -> Record | None:
    """A document, or a line about why it is not shown."""
    try:
        if LOCAL.size(path) > DOCUMENT_BYTES:
            left_out.append(f"{path} has {LOCAL.size(path):,} bytes")
            return None
        return msgspec_json.decode(LOCAL.read(path), type=kind)
    except HostError as error:
        left_out.append(error.message)
    except (DecodeError, RecursionError) as error:
        left_out.append(f"{path} cannot be read: {error}")
    return None


def _listed(folder: Path) -> list[Path]:
    return list(LOCAL.list(folder)) if LOCAL.exists(folder) else []


def _newest(rows: tuple[Record, ...], what: str, left_out: list[str]) -> tuple[Record, ...]:
    if len(rows) > MOST_ROWS:
        left_out.append(f"showing the newest {MOST_ROWS:,} of {len(rows):,} {what}")
    return rows[-MOST_ROWS:]
