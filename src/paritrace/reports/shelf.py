"""What lies at a path: runs and comparisons, also the unreadable ones with their error (SU-10)."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.compare.result import FORMAT as COMPARISON_FORMAT
from paritrace.compare.result import Comparison
from paritrace.errors import HostError, ParitraceError, RequestError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL, Files
from paritrace.reports.documents import decoded
from paritrace.reports.keeping import FOLDER, MANIFEST, NAMES
from paritrace.reports.kept_result import KeptResult, open_result
from paritrace.reports.shelf_others import (
    SESSION_NAME,
    ShelvedCheck,
    ShelvedManifest,
    ShelvedSession,
    ShelvedStore,
    is_manifest,
    is_session,
    others_at,
    shelved_check,
)
from paritrace.runs.catalog import ARCHIVE_SUFFIX, MAX_DEPTH, RunLine, catalog
from paritrace.runs.envelope import ENVELOPE_NAME

MOST = 1000  # of each kind on the index, and folders that are looked into; a page of more helps nobody
KEY_DIGITS = 12
DOCUMENT_BYTES = 64 << 20  # of a bare document; the largest seen is a tenth of it


class ShelvedRun(Struct, frozen=True):
    key: str
    line: RunLine


class ShelvedComparison(Struct, frozen=True):
    """`path` is the folder of a kept result, or a document that stands alone (`bare`)."""

    key: str
    path: str
    bare: bool
    baseline: str  # run ids
    candidate: str
    sentence: str  # the first finding, "" without one
    findings: int
    calls: int


class Trouble(Struct, frozen=True):
    """Something that cannot be shown, and why."""

    path: str
    code: str
    message: str


class Shelf(Struct, frozen=True):
    """What there is to look at; `left_out` says in words what was not looked at."""

    path: str
    runs: tuple[ShelvedRun, ...]
    comparisons: tuple[ShelvedComparison, ...]
    troubles: tuple[Trouble, ...]
    checks: tuple[ShelvedCheck, ...] = ()
    manifests: tuple[ShelvedManifest, ...] = ()
    stores: tuple[ShelvedStore, ...] = ()
    sessions: tuple[ShelvedSession, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        others = (self.checks, self.manifests, self.stores, self.sessions)
        return not any((self.runs, self.comparisons, self.troubles, *others))


class Result(Struct, frozen=True):
    """An opened comparison; `kept` is None where it is a document alone, without its table of calls."""

    path: Path
    comparison: Comparison
    kept: KeptResult | None


def key_of(path: Path, /) -> str:
    """Returns the name of a path in addresses: no path is ever read from one."""
    return sha256_hex(str(path.resolve()).encode("utf-8", "surrogateescape"))[:KEY_DIGITS]


def shelf_of(path: Path, /, *, files: Files = LOCAL) -> Shelf:
    """Returns what lies at `path`: a run, a comparison, a document, or all of these in and below a folder.

    Raises:
        HostError: Refused: `not_found`, or the folder cannot be listed.
        RequestError: Refused, `nothing_to_view`: a file that is none of these.
    """
    if not files.exists(path):
        raise HostError(f"{path} does not exist", code="not_found", fix="check the path of the run or comparison")
    place = _place_of(path, files=files)
    runs, troubles, left_out = _runs(place, files=files)
    found = [_comparison(one, files=files) for one in _results(place, runs, files=files)]
    others = others_at(place, files=files)
    checks = [_check(one, files=files) for one in others.checks]
    shelf = Shelf(
        path=str(place),
        runs=runs[:MOST],
        comparisons=tuple(one for one in found if isinstance(one, ShelvedComparison))[:MOST],
        troubles=(*troubles, *(one for one in (*found, *checks) if isinstance(one, Trouble)))[:MOST],
        checks=tuple(one for one in checks if isinstance(one, ShelvedCheck))[:MOST],
        manifests=tuple(ShelvedManifest(key_of(one), str(one), files.size(one)) for one in others.manifests)[:MOST],
        stores=tuple(ShelvedStore(key_of(one), str(one)) for one in others.stores)[:MOST],
        sessions=tuple(ShelvedSession(key_of(one), str(one)) for one in others.sessions)[:MOST],
        left_out=(*left_out, *_too_many(len(runs), "runs"), *_too_many(len(found), "comparisons")),
    )
    if not path.is_dir() and shelf.is_empty:
        raise RequestError(
            f"{path} is no run, comparison, check, manifest of attempts, store or session",
            code="nothing_to_view",
            fix="name a run, a comparison's folder or document, a check.json, a manifest of attempts, a store, "
            "a session's directory, or a folder that holds some",
        )
    return shelf


def open_shelved(path: Path, /, *, files: Files = LOCAL) -> Result:
    """Opens the comparison at a path of the shelf.

    Raises:
        EvidenceError: Refused, `damaged_result`.
        HostError: Refused: it cannot be read.
    """
    if path.is_dir():
        kept = open_result(path, files=files)
        return Result(path, kept.comparison, kept)
    if files.size(path) > DOCUMENT_BYTES:
        raise HostError(
            f"{path} has {files.size(path):,} bytes",
            code="document_too_large",
            fix="keep the comparison in a folder: -o DIR",
        )
    return Result(path, decoded(files.read(path), Comparison, name=str(path)), None)


def _place_of(path: Path, *, files: Files) -> Path:
    """The folder that a file of ours stands for."""
    beside = path.parent
    if path.name == MANIFEST and is_manifest(path, files=files):
        return path
    if path.name == SESSION_NAME and is_session(beside, files=files):
        return beside
    if path.name == ENVELOPE_NAME or (path.name in (MANIFEST, *NAMES.values()) and (beside / MANIFEST).exists()):
        return beside
    return path


def _runs(place: Path, *, files: Files) -> tuple[tuple[ShelvedRun, ...], list[Trouble], list[str]]:
    if not place.is_dir():
        if not place.name.endswith(ARCHIVE_SUFFIX):
            return (), [], []
        found = catalog(place.parent, files=files)
        lines = [line for line in found.runs if Path(line.path) == place]
    else:
        found = catalog(place, files=files)
        lines = list(found.runs)
    troubles = [
        Trouble(one.path, one.code, one.message) for one in found.unreadable if place.is_dir() or one.path == str(place)
    ]
    left_out = [f"{one}: folders this deep are not entered" for one in found.not_entered]
    return tuple(ShelvedRun(key_of(Path(line.path)), line) for line in lines), troubles, left_out


def _results(place: Path, runs: tuple[ShelvedRun, ...], *, files: Files) -> Iterator[Path]:
    """The folders and documents of comparisons at a place: those below runs, and others in and below it."""
    if not place.is_dir():
        if _is_document(place, files=files):
            yield place
        return
    for run in runs:
        if not run.line.archive:
            yield from _kept_below(Path(run.line.path) / FOLDER, depth=2, files=files)
    if not files.exists(place / ENVELOPE_NAME):
        yield from _kept_below(place, depth=MAX_DEPTH, files=files)


def _kept_below(folder: Path, *, depth: int, files: Files) -> Iterator[Path]:
    """Results in and below a folder, outside of runs; what cannot be listed holds none that could be shown."""
    try:
        if not files.exists(folder) or not files.is_folder(folder) or is_session(folder, files=files):
            return
        if files.exists(folder / MANIFEST) and not is_manifest(folder / MANIFEST, files=files):
            yield folder
            return
        entries = files.list(folder)[:MOST]
    except HostError:
        return
    for entry in entries:
        if entry.suffix == ".json" and _is_document(entry, files=files):
            yield entry
        elif depth and entry.is_dir() and not entry.is_symlink() and not (entry / ENVELOPE_NAME).exists():
            yield from _kept_below(entry, depth=depth - 1, files=files)


def _is_document(path: Path, *, files: Files) -> bool:
    """Whether a file begins as a document of a comparison does."""
    try:
        head = b"".join(files.iter_chunks(path, length=256))
    except HostError:
        return False
    return head.lstrip().startswith(b"{") and COMPARISON_FORMAT.encode() + b'"' in head


def _comparison(path: Path, *, files: Files) -> ShelvedComparison | Trouble:
    try:
        found = open_shelved(path, files=files)
    except ParitraceError as error:
        return Trouble(str(path), error.code, error.message)
    comparison = found.comparison
    return ShelvedComparison(
        key=key_of(path),
        path=str(path),
        bare=found.kept is None,
        baseline=comparison.baseline.run_id,
        candidate=comparison.candidate.run_id,
        sentence=comparison.findings[0].sentence if comparison.findings else "",
        findings=len(comparison.findings),
        calls=comparison.counts.calls_baseline + comparison.counts.calls_candidate,
    )


def _check(path: Path, *, files: Files) -> ShelvedCheck | Trouble:
    try:
        return shelved_check(path, key=key_of(path), files=files)
    except ParitraceError as error:
        return Trouble(str(path), error.code, error.message)


def _too_many(number: int, what: str) -> tuple[str, ...]:
    return (f"showing {MOST:,} of {number:,} {what}",) if number > MOST else ()
