"""What lies at a path besides runs and comparisons: checks, manifests of attempts, stores, sessions (SU-10)."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from paritrace.attempts.manifest import FORMAT as MANIFEST_FORMAT
from paritrace.compare.checks_result import FORMAT as CHECK_FORMAT
from paritrace.compare.checks_result import Checked, Outcome
from paritrace.errors import HostError, ParitraceError
from paritrace.files import Files
from paritrace.reports.documents import decoded
from paritrace.runs.catalog import MAX_DEPTH
from paritrace.runs.envelope import ENVELOPE_NAME
from paritrace.store.problems import in_words
from paritrace.store.recognising import is_store
from paritrace.store.status import PublishedRank, status_of
from paritrace.store.syncing import BATCH_BYTES
from paritrace.store.targets import open_target

HEAD_BYTES = 256  # of a document: what it says it is stands there
MOST_ENTRIES = 1000  # of a folder
DOCUMENT_BYTES = 64 << 20
DOCUMENTS = frozenset({".json", ".yaml", ".yml"})
SESSION_NAME, SESSION_FORMAT = (
    "session.json",
    "paritrace-session",
)  # as `session.directory` has them, which is beside us
SESSION_BYTES = 1 << 20  # of that file: its arguments are the caller's own


class ShelvedCheck(Struct, frozen=True):
    """The document of a check, as `paritrace check -o` keeps it."""

    key: str
    path: str
    run_id: str
    fails: int
    not_checkable: int
    invariants: int


class ShelvedStore(Struct, frozen=True):
    """A folder of published bundles."""

    key: str
    path: str


class ShelvedSession(Struct, frozen=True):
    """The directory of a resident session; what it holds is read when it is asked for."""

    key: str
    path: str


class ShelvedManifest(Struct, frozen=True):
    """A manifest of attempts; it is read when it is asked for."""

    key: str
    path: str
    bytes: int


class StorePage(Struct, frozen=True):
    """How far the ranks of a store are, by names and sizes; `problems` in words."""

    path: str
    ranks: tuple[PublishedRank, ...]
    problems: tuple[str, ...]


class Others(Struct, frozen=True):
    """Where they lie."""

    checks: tuple[Path, ...] = ()
    manifests: tuple[Path, ...] = ()
    stores: tuple[Path, ...] = ()
    sessions: tuple[Path, ...] = ()


class _Kind(StrEnum):
    CHECK = "check"
    MANIFEST = "manifest"
    STORE = "store"
    SESSION = "session"


def others_at(place: Path, /, *, files: Files) -> Others:
    """Returns what lies at a path and below it, outside of runs, to a bounded depth."""
    found = list(_found(place, depth=MAX_DEPTH, files=files))
    return Others(
        checks=tuple(path for kind, path in found if kind is _Kind.CHECK),
        manifests=tuple(path for kind, path in found if kind is _Kind.MANIFEST),
        stores=tuple(path for kind, path in found if kind is _Kind.STORE),
        sessions=tuple(path for kind, path in found if kind is _Kind.SESSION),
    )


def is_manifest(path: Path, /, *, files: Files) -> bool:
    """Whether a file begins as a manifest of attempts does, by its format or as `paritrace attempts import` writes it.

    Raises:
        HostError: Refused: it cannot be read.
    """
    head = _head(path, files=files)
    return MANIFEST_FORMAT.encode() in head or b"".join(head.split()).startswith(b'{"attempts":')


def is_session(place: Path, /, *, files: Files) -> bool:
    """Whether a folder is a resident session's directory.

    Raises:
        HostError: Refused: its record cannot be read.
    """
    path = place / SESSION_NAME
    if not files.exists(path) or files.size(path) > SESSION_BYTES:
        return False
    return f'"{SESSION_FORMAT}"'.encode() in files.read(path)


def read_check(path: Path, /, *, files: Files) -> Checked:
    """Returns the document of a check.

    Raises:
        EvidenceError: Refused, `damaged_result`.
        HostError: Refused: `document_too_large`, or it cannot be read.
    """
    if files.size(path) > DOCUMENT_BYTES:
        raise HostError(
            f"{path} has {files.size(path):,} bytes",
            code="document_too_large",
            fix="check the run again: paritrace check RUN -o DIR",
        )
    return decoded(files.read(path), Checked, name=str(path))


def shelved_check(path: Path, /, *, key: str, files: Files) -> ShelvedCheck:
    """Returns what the first page says of a check; raises as `read_check`."""
    checked = read_check(path, files=files)
    return ShelvedCheck(
        key=key,
        path=str(path),
        run_id=checked.run.run_id,
        fails=checked.counts.get(Outcome.FAIL, 0),
        not_checkable=checked.counts.get(Outcome.NOT_CHECKABLE, 0),
        invariants=len(checked.invariants),
    )


def store_page(path: Path, /, *, files: Files) -> StorePage:
    """Returns the status of a store, as `paritrace store status` says it: no bundle is opened.

    Raises:
        HostError: Refused: it cannot be listed.
    """
    found = status_of(open_target(str(path)), None, None, batch_bytes=BATCH_BYTES, files=files)
    return StorePage(str(path), found.published, tuple(map(in_words, found.problems)))


def _found(place: Path, *, depth: int, files: Files) -> Iterator[tuple[_Kind, Path]]:
    """What cannot be listed or read holds nothing that could be shown."""
    try:
        if not files.is_folder(place):
            if place.suffix in DOCUMENTS and is_manifest(place, files=files):
                yield _Kind.MANIFEST, place
            elif place.suffix == ".json" and _is_check(place, files=files):
                yield _Kind.CHECK, place
            return
        if is_store(place, files=files):
            yield _Kind.STORE, place
            return
        if is_session(place, files=files):
            yield _Kind.SESSION, place
            return
        if files.exists(place / ENVELOPE_NAME) or not depth:
            return
        entries = files.list(place)[:MOST_ENTRIES]
    except ParitraceError:
        return
    for entry in entries:
        if not entry.is_symlink():
            yield from _found(entry, depth=depth - 1, files=files)


def _is_check(path: Path, *, files: Files) -> bool:
    head = _head(path, files=files)
    return head.lstrip().startswith(b"{") and CHECK_FORMAT.encode() + b'"' in head


def _head(path: Path, *, files: Files) -> bytes:
    return next(iter(files.iter_chunks(path, length=HEAD_BYTES)), b"")
