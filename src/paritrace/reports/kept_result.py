"""Opens a kept comparison: by its folder, by a file in it, by its candidate's run, or the last one here."""

from pathlib import Path

from msgspec import Struct

from paritrace.compare.result import Comparison
from paritrace.errors import EvidenceError, HostError, RequestError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import Files
from paritrace.reports.documents import decoded
from paritrace.reports.keeping import FOLDER, LAST, MANIFEST, NAMES
from paritrace.reports.manifest import LastComparison, Manifest, is_readable

LOOKED_AT = 2000  # folders looked at for the last result: a folder of runs has fewer, a home directory is refused


class KeptResult(Struct, frozen=True):
    directory: Path
    manifest: Manifest
    comparison: Comparison

    def calls_path(self) -> Path:
        """Returns the path of calls.parquet, whether or not it was kept."""
        return self.directory / NAMES["parquet"]


def required_calls_path(result: KeptResult, /, *, files: Files) -> Path:
    """Returns where the calls of a result lie.

    Raises:
        EvidenceError: Refused, `damaged_result`: they were not kept.
    """
    path = result.calls_path()
    if not files.exists(path):
        raise EvidenceError(
            f"{path} was not kept",
            code="damaged_result",
            fix="run paritrace compare again without --format, so that calls.parquet is kept",
        )
    return path


def open_result(path: Path, /, *, files: Files) -> KeptResult:
    """Opens the result at `path`: its folder, a file in it, or the candidate's run directory (its last result).

    Raises:
        RequestError: Refused, `no_result`: there is no result at `path`.
        EvidenceError: Refused, `damaged_result`: what is there is not what its manifest says.
    """
    if path.name in (MANIFEST, *NAMES.values()):
        path = path.parent
    if files.exists(path / MANIFEST):
        return _opened(path, files=files)
    if files.exists(path / FOLDER / LAST):
        return _opened(_last_of(path, files=files)[1], files=files)
    raise RequestError(
        f"there is no comparison at {path}",
        code="no_result",
        fix="give the folder that paritrace compare printed, or a run directory that was a candidate",
    )


def last_result(here: Path, /, *, files: Files) -> KeptResult:
    """Opens the comparison made last among the runs in `here` and in the folders of `here`.

    Raises:
        RequestError: Refused, `no_result`: no run here was a candidate; `ambiguous_result`: two were made at once.
    """
    found = sorted(_last_of(run, files=files) for run in _candidates(here, files=files))
    if not found:
        raise RequestError(
            "no comparison was made of a run in this folder",
            code="no_result",
            fix="run paritrace compare BASE CAND first, or name the result: paritrace explain RESULT ID",
        )
    if len(found) > 1 and found[-1][0] == found[-2][0]:
        raise RequestError(
            f"{found[-1][1]} and {found[-2][1]} were made at the same time",
            code="ambiguous_result",
            fix="name the one that is meant: paritrace explain RESULT ID",
        )
    return _opened(found[-1][1], files=files)


def _candidates(here: Path, *, files: Files) -> list[Path]:
    folders = [here]
    for depth_of_search in (here, *_folders(here, files=files)):
        folders += _folders(depth_of_search, files=files)
        if len(folders) > LOOKED_AT:
            raise RequestError(
                f"there are more than {LOOKED_AT} folders here",
                code="no_result",
                fix="name the result: paritrace explain RESULT ID",
            )
    return [folder for folder in dict.fromkeys(folders) if files.exists(folder / FOLDER / LAST)]


def _folders(path: Path, *, files: Files) -> list[Path]:
    try:
        return [entry for entry in files.list(path) if files.is_folder(entry)]
    except HostError:  # a folder that may not be listed holds no result of ours
        return []


def _last_of(run: Path, *, files: Files) -> tuple[int, Path]:
    path = run / FOLDER / LAST
    last = decoded(files.read(path), LastComparison, name=str(path))
    return last.made_unix_ns, run / FOLDER / last.directory


def _opened(directory: Path, *, files: Files) -> KeptResult:
    manifest = decoded(files.read(directory / MANIFEST), Manifest, name=str(directory / MANIFEST))
    if not is_readable(manifest):
        raise _damaged(f"{directory / MANIFEST} has version {manifest.version!r}")
    path = directory / NAMES["json"]
    data = files.read_if_present(path)
    if data is None:
        raise _damaged(f"{path} is missing")
    stated = [file.sha256 for file in manifest.files if file.path == path.name]
    if stated != [sha256_hex(data)]:
        raise _damaged(f"{path} is not what its manifest says")
    comparison = decoded(data, Comparison, name=str(path))
    return KeptResult(directory=directory, manifest=manifest, comparison=comparison)


def _damaged(message: str) -> EvidenceError:
    return EvidenceError(
        message,
        code="damaged_result",
        fix="run paritrace compare again; results can always be made anew from their runs",
    )
