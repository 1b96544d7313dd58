"""Keeps a comparison: its documents beside a manifest, written so that a folder with a manifest is whole (P3, P4)."""

from collections.abc import Callable, Iterable
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
from paritrace.reports.documents import comparison_document, decoded, encoded
from paritrace.reports.first_screen import Kept, first_screen
from paritrace.reports.manifest import ExportedFile, LastComparison, Manifest, SourceFile
from paritrace.reports.parquet import write_calls
from paritrace.reports.rows_table import write_rows

FOLDER = "comparisons"
LAST = "last.json"
MANIFEST = "manifest.json"
NAMES = {  # in the order of writing
    "parquet": "calls.parquet",
    "rows": "rows.parquet",  # of format parquet, where the runs hold rows of tokens
    "text": "first_screen.txt",
    "json": "comparison.json",
}
FORMATS = ("parquet", "text", "json")


class Keeping(Struct, frozen=True):
    """What is kept where. `formats`: of FORMATS; a manifest is always written."""

    comparison: Comparison
    rows: Iterable[CallRow]
    sources: tuple[SourceFile, ...]
    made_by: str  # program and version
    formats: tuple[str, ...] = FORMATS
    token_rows: TokenRowsCompared | None = None
    judge_seconds: int | None = None  # for the screen's next commands
    narrow_seconds: int | None = None

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
    for name in _chosen(keeping):
        _WRITERS[name](keeping, comparison, directory / NAMES[name], files, kept)
    exported = tuple(_exported(directory / NAMES[name], files=files) for name in _chosen(keeping))
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
    _WRITERS[name](keeping, keeping.comparison, path, files, None)


def _with_reports(keeping: Keeping) -> Comparison:
    reports = {name: NAMES[name] for name in _chosen(keeping)}
    return replace(keeping.comparison, reports=reports | {"manifest": MANIFEST})


def _chosen(keeping: Keeping) -> tuple[str, ...]:
    rows = () if keeping.token_rows is None else ("rows",)
    wanted = {*keeping.formats, *rows} if "parquet" in keeping.formats else {*keeping.formats}
    return tuple(name for name in NAMES if name in wanted and (name != "rows" or rows))


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


def _write_parquet(keeping: Keeping, comparison: Comparison, path: Path, files: Files, _kept: Kept | None) -> None:
    with files.replacing(path) as sink:
        write_calls(keeping.rows, sink, schemes=comparison.schemes)


def _write_rows(keeping: Keeping, _comparison: Comparison, path: Path, files: Files, _kept: Kept | None) -> None:
    if keeping.token_rows is not None:
        with files.replacing(path) as sink:
            write_rows(keeping.token_rows, sink)


def _write_text(_keeping: Keeping, comparison: Comparison, path: Path, files: Files, kept: Kept | None) -> None:
    files.replace(path, first_screen(comparison, kept=kept).encode())


def _write_json(_keeping: Keeping, comparison: Comparison, path: Path, files: Files, _kept: Kept | None) -> None:
    files.replace(path, comparison_document(comparison))


_WRITERS: dict[str, Callable[[Keeping, Comparison, Path, Files, Kept | None], None]] = {
    "parquet": _write_parquet,
    "rows": _write_rows,
    "text": _write_text,
    "json": _write_json,
}


def _exported(path: Path, *, files: Files) -> ExportedFile:
    digest = sha256_of(files.iter_chunks(path))
    return ExportedFile(path=path.name, size=digest.num_bytes, sha256=digest.sha256)


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
