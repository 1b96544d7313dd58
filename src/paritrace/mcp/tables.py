"""The table of calls of a kept comparison, held to its manifest before anything is read from it (P3)."""

from functools import lru_cache
from pathlib import Path

from paritrace.errors import EvidenceError, RequestError
from paritrace.evidence.digests import DigestOfBytes, sha256_of
from paritrace.files import Files
from paritrace.reports.keeping import NAMES
from paritrace.reports.shelf import Result

KNOWN = 64  # digests that are remembered, by file and the time of its last change


def checked_table(result: Result, /, *, files: Files) -> Path:
    """Returns the path of calls.parquet; its bytes are hashed once for each time that they were written.

    Raises:
        RequestError: Refused, `no_calls_table`: a document alone, or a result kept without it.
        EvidenceError: Refused, `damaged_result`: missing, or not what the manifest says.
    """
    stated = [] if result.kept is None else [one for one in result.kept.manifest.files if one.path == NAMES["parquet"]]
    if result.kept is None or not stated:
        raise RequestError(
            "this comparison was kept without its table of calls",
            code="no_calls_table",
            fix="run paritrace compare BASE CAND -o FOLDER: the folder keeps calls.parquet beside the document",
        )
    path = result.kept.calls_path()
    if not files.exists(path):
        raise _damaged(f"{path} is missing")
    found = _digest(path, files.size(path), files.modified_ns(path), files)
    if [(one.size, one.sha256) for one in stated] != [(found.num_bytes, found.sha256)]:
        raise _damaged(f"{path} is not what its manifest says")
    return path


def table_if_kept(result: Result, /, *, files: Files) -> Path | None:
    """Returns the path of calls.parquet; None where the result was kept without it.

    Raises:
        EvidenceError: Refused, `damaged_result`: as `checked_table`, or a table that the manifest does not name.
    """
    try:
        return checked_table(result, files=files)
    except RequestError:
        if result.kept is not None and files.exists(result.kept.calls_path()):
            raise _damaged(f"{result.kept.calls_path()} is not named by its manifest") from None
        return None


@lru_cache(maxsize=KNOWN)
def _digest(path: Path, _size: int, _modified_ns: int, files: Files) -> DigestOfBytes:
    return sha256_of(files.iter_chunks(path))


def _damaged(message: str) -> EvidenceError:
    return EvidenceError(
        message,
        code="damaged_result",
        fix="run paritrace compare again; results can always be made anew from their runs",
    )
