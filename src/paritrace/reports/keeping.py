"""Keeps a comparison: its documents beside a manifest, written so that a folder with a manifest is whole (P3, P4)."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.clock import Clock
from paritrace.compare.result import Comparison
from paritrace.compare.rows import CallRow
from paritrace.compare.token_rows import TokenRowsCompared
from paritrace.errors import RequestError
from paritrace.evidence.digests import sha256_of
from paritrace.files import Files
from paritrace.reports import manifest
from paritrace.reports.documents import decoded, encoded
from paritrace.reports.first_screen import Kept
from paritrace.reports.formats import FORMATS as TABLE
from paritrace.reports.formats import Allowed, OfComparison, Sink, of_comparisons, writer_of_comparison
from paritrace.reports.manifest import ExportedFile, LastComparison, Manifest, SourceFile
from paritrace.reports.rows_table import write_rows
from paritrace.runs.reading import Run

FOLDER = "comparisons"
LAST = "last.json"
MANIFEST = "manifest.json"
ROWS = "rows"  # of format parquet, where the runs hold rows of tokens
NAMES = {"parquet": "calls.parquet", ROWS: "rows.parquet"} | {name: TABLE[name].file for name in of_comparisons()}
FORMATS = ("parquet", "text", "json")  # what a result is kept in where nothing else is asked for


class Keeping(Struct, frozen=True):
    """What is kept where. `formats`: names of formats that show comparisons; a manifest is always written."""

    comparison: Comparison
    rows: Iterable[CallRow]
    sources: tuple[SourceFile, ...]
    made_by: str  # program and version
    formats: tuple[str, ...] = FORMATS
    token_rows: TokenRowsCompared | None = None
    judge_seconds: int | None = None  # for the screen's next commands
    narrow_seconds: int | None = None
    runs: tuple[Run, Run] | None = None  # baseline and candidate, open
    allowed: Allowed = Allowed()

    def key(self) -> str:
        return manifest.key_of(self.comparison, self.sources, made_by=self.made_by)


def default_directory(keeping: Keeping, /) -> Path:
    """Returns where a result is kept without `-o`: below the candidate's run directory, named by its key."""
    run = Path(keeping.comparison.candidate.path)
    return run / FOLDER / _folder_name(keeping.comparison.baseline.run_id) / keeping.key()[: manifest.KEY_DIGITS]


def _folder_name(run_id: str) -> str:
    return f"_{run_id}" if run_id.startswith(".") else run_id  # `..` is an id, but no place for a result


def keep(keeping: Keeping, /, directory: Path, *, files: Files, found_without_name: bool = False) -> Comparison:
    """Writes the documents of a comparison into `directory` and returns it with its `reports` filled in.

    Raises:
        RequestError: Refused, `another_result`: the folder holds a result with another key, or other files.
        HostError: Refused or Failed by what was already written; a folder without a manifest is no result.
    """
    key = keeping.key()
    _require_room(directory, key=key, files=files)
    files.mkdir(directory)
    comparison = _with_reports(keeping)
    kept = Kept(str(directory), found_without_name, keeping.judge_seconds, keeping.narrow_seconds)
    given = _given(keeping, comparison, kept)
    paths = [path for name in _chosen(keeping) for path in _write(given, name, directory / NAMES[name], files=files)]
    exported = tuple(_exported(path, directory=directory, files=files) for path in paths)
    files.replace(directory / MANIFEST, encoded(_manifest(keeping, key=key, exported=exported)))
    return comparison


def remember(keeping: Keeping, /, *, files: Files, clock: Clock) -> None:
    """Notes the result kept in its default place as the candidate's last one, so that RESULT may be left out."""
    folder = Path(keeping.comparison.candidate.path) / FOLDER
    last = LastComparison(
        format=manifest.LAST_FORMAT,
        version=manifest.VERSION,
        directory=default_directory(keeping).relative_to(folder).as_posix(),
        made_unix_ns=clock.wall_ns(),
    )
    files.replace(folder / LAST, encoded(last))


def write_one(keeping: Keeping, /, path: Path, *, name: str, files: Files) -> None:
    """Writes one document under the name the user gave."""
    with files.replacing(path) as sink:
        _write_into(_given(keeping, keeping.comparison, None), name, sink)


def write_into(keeping: Keeping, name: str, sink: Sink, /, *, kept: Kept | None) -> None:
    """Writes one document to a sink; `kept` says where the others lie."""
    _write_into(_given(keeping, keeping.comparison, kept), name, sink)


def _given(keeping: Keeping, comparison: Comparison, kept: Kept | None) -> OfComparison:
    return OfComparison(
        comparison=comparison,
        rows=keeping.rows,
        runs=keeping.runs,
        kept=kept,
        token_rows=keeping.token_rows,
        allowed=keeping.allowed,
    )


def _write(given: OfComparison, name: str, path: Path, *, files: Files) -> list[Path]:
    """Writes one format, which may be several files, and returns their paths."""
    form = TABLE.get(name)
    if form is None or not form.per_rank:
        with files.replacing(path) as sink:
            _write_into(given, name, sink)
        return [path]
    written: list[Path] = []
    for rank in given.comparison.ranks_compared:
        written.append(path / f"rank-{rank}{form.suffixes[0]}")
        with files.replacing(written[-1]) as sink:
            _write_into(replace(given, cut=replace(given.cut, ranks=(rank,))), name, sink)
    return written


def _write_into(given: OfComparison, name: str, sink: Sink) -> None:
    if name == ROWS:
        if given.token_rows is not None:
            write_rows(given.token_rows, sink)
        return
    writer_of_comparison(TABLE[name])(given, sink)


def _with_reports(keeping: Keeping) -> Comparison:
    reports = {name: NAMES[name] for name in _chosen(keeping)}
    return replace(keeping.comparison, reports=reports | {"manifest": MANIFEST})


def _chosen(keeping: Keeping) -> tuple[str, ...]:
    rows = () if keeping.token_rows is None else (ROWS,)
    wanted = {*keeping.formats, *rows} if "parquet" in keeping.formats else {*keeping.formats}
    return tuple(name for name in NAMES if name in wanted and (name != ROWS or rows))


def _require_room(directory: Path, *, key: str, files: Files) -> None:
    if not files.exists(directory):
        return
    found = files.read_if_present(directory / MANIFEST)
    if found is not None:
        if decoded(found, Manifest, name=str(directory / MANIFEST)).key == key:
            return
    elif all(entry.name in NAMES.values() for entry in files.list(directory)):
        return  # empty, or cut off before its manifest
    raise RequestError(
        f"{directory} holds something else already",
        code="another_result",
        fix="name a new folder with -o, or leave -o out",
    )


def _exported(path: Path, *, directory: Path, files: Files) -> ExportedFile:
    digest = sha256_of(files.iter_chunks(path))
    name = path.relative_to(directory).as_posix()
    return ExportedFile(path=name, size=digest.num_bytes, sha256=digest.sha256)


def _manifest(keeping: Keeping, *, key: str, exported: tuple[ExportedFile, ...]) -> Manifest:
    return Manifest(
        format=manifest.FORMAT,
        version=manifest.VERSION,
        key=key,
        baseline=keeping.comparison.baseline,
        candidate=keeping.comparison.candidate,
        settings=keeping.comparison.settings,
        sources=keeping.sources,
        files=exported,
    )
