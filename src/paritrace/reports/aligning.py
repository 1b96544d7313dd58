"""Applies an alignment map to a kept comparison: a fresh one is written whole or not at all (CP-14, CP-22)."""

import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from paritrace.compare.alignment import Review
from paritrace.compare.alignment_apply import Applied, apply
from paritrace.compare.alignment_facts import Known, wanted_by
from paritrace.compare.alignment_file import ReadMap, read_map
from paritrace.compare.alignment_problems import problems_with
from paritrace.compare.alignment_result import aligned
from paritrace.compare.result import Comparison
from paritrace.errors import EvidenceError, HostError, RequestError
from paritrace.evidence.digests import sha256_hex, sha256_of
from paritrace.files import TEMPORARY_PREFIX, Files
from paritrace.reports import manifest
from paritrace.reports.aligned_table import calls_of, write_aligned
from paritrace.reports.documents import comparison_document, encoded
from paritrace.reports.first_screen import Kept, first_screen
from paritrace.reports.keeping import FORMATS, MANIFEST, NAMES
from paritrace.reports.kept_result import KeptResult, open_result
from paritrace.reports.manifest import ExportedFile, Manifest

MAP_NAME = "alignment_map.json"


class Artifact(Struct, frozen=True):
    """A kept comparison whose files are what its manifest says."""

    result: KeptResult
    sha256: str  # of its manifest


def open_artifact(path: Path, /, *, files: Files) -> Artifact:
    """Opens a kept comparison and verifies every file that its manifest names.

    Raises:
        RequestError: Refused, `no_result`.
        EvidenceError: Refused, `damaged_result`: a file is missing or changed, or calls.parquet was not kept.
    """
    result = open_result(path, files=files)
    for exported in result.manifest.files:
        place = result.directory / exported.path
        if not files.exists(place) or sha256_of(files.iter_chunks(place)).sha256 != exported.sha256:
            raise _damaged(f"{place} is not what its manifest says")
    if NAMES["parquet"] not in {exported.path for exported in result.manifest.files}:
        raise _damaged(f"{result.calls_path()} was not kept")
    return Artifact(result, sha256_hex(files.read(result.directory / MANIFEST)))


def _damaged(message: str) -> EvidenceError:
    return EvidenceError(
        message,
        code="damaged_result",
        fix="run paritrace compare again; results can always be made anew from their runs",
    )


class Reviewed(NamedTuple):
    """A map that holds together with its artifact, and what it comes to."""

    artifact: Artifact
    applied: Applied
    review: Review
    map_data: bytes


def reviewed(artifact: Artifact, map_path: Path, /, *, files: Files) -> Reviewed:
    """Reads a map and holds it against the artifact; nothing is written.

    Raises:
        RequestError: Refused: `bad_alignment_map` with every problem of the map.
        HostError: Refused: it cannot be read.
    """
    data = files.read(map_path)
    return Reviewed(artifact, *_reviewed(artifact, data, map_path), data)


def align(artifact: Artifact, map_path: Path, out: Path, /, *, files: Files, made_by: str) -> Comparison:
    """Writes the reviewed comparison as the new folder `out` and returns it; the artifact is only read.

    Raises:
        RequestError: Refused: `bad_alignment_map` with every problem of the map; `already_there`: `out` exists.
        HostError: Refused; a folder under the name `out` is whole or not there.
    """
    if files.exists(out):
        raise _in_the_way(out)
    return write_reviewed(reviewed(artifact, map_path, files=files), out, files=files, made_by=made_by)


def write_reviewed(found: Reviewed, out: Path, /, *, files: Files, made_by: str) -> Comparison:
    """Writes a reviewed comparison as the new folder `out`.

    Raises:
        RequestError: Refused, `already_there`.
        HostError: Refused; a folder under the name `out` is whole or not there.
    """
    artifact, applied, review, data = found
    comparison = aligned(artifact.result.comparison, list(applied.changes.values()), review)
    comparison = replace(
        comparison, reports={name: NAMES[name] for name in FORMATS} | {"manifest": MANIFEST, "alignment_map": MAP_NAME}
    )
    staged = out.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.align"
    files.mkdir(out.parent)
    try:
        files.mkdir(staged)
        _write(staged, (artifact, applied, comparison), data, out=out, files=files, made_by=made_by)
        if files.exists(out):
            raise _in_the_way(out)
        files.rename_folder(staged, out)
    except BaseException:
        _discard(staged, files)
        raise
    return comparison


def _in_the_way(out: Path) -> RequestError:
    return RequestError(f"{out} is there already", code="already_there", fix="name a new folder for OUT")


def _reviewed(artifact: Artifact, data: bytes, path: Path) -> tuple[Applied, Review]:
    read = read_map(data)
    known = Known(() if read.review is None else calls_of(artifact.result.calls_path(), wanted_by(read.review)))
    review = read.review
    problems = tuple(problems_with(read, known, artifact_sha256=artifact.sha256))
    if problems or review is None:
        raise _bad_map(path, problems, read)
    applied = apply(review, known)
    return applied, Review(
        source_sha256=artifact.sha256,
        map_sha256=sha256_hex(data),
        reviewer=review.reviewer.strip(),
        reason=review.reason.strip(),
        pairs=applied.pairs,
        slots=applied.slots,
    )


def _bad_map(path: Path, problems: tuple[str, ...], read: ReadMap) -> RequestError:
    told = problems or read.problems
    count = f"{len(told)} {'problem' if len(told) == 1 else 'problems'}"
    return RequestError(
        f"{path} cannot be applied: {count}",
        code="bad_alignment_map",
        fix="mend them all; `paritrace align --template ARTIFACT` prints a map to fill in",
        details=told,
    )


def _write(
    staged: Path,
    made: tuple[Artifact, Applied, Comparison],
    data: bytes,
    *,
    out: Path,
    files: Files,
    made_by: str,
) -> None:
    artifact, applied, comparison = made
    with files.replacing(staged / NAMES["parquet"]) as sink:
        write_aligned(artifact.result.calls_path(), sink, changes=applied.changes)
    kept = Kept(directory=str(out), found_without_name=False)
    written: dict[str, Callable[[], bytes]] = {
        NAMES["text"]: lambda: first_screen(comparison, kept=kept).encode(),
        NAMES["json"]: lambda: comparison_document(comparison),
        MAP_NAME: lambda: data,
    }
    for name, make in written.items():
        files.replace(staged / name, make())
    names = (NAMES["parquet"], *written)
    exported = tuple(_exported(staged / name, files=files) for name in names)
    files.replace(staged / MANIFEST, encoded(_manifest(artifact, comparison, exported, made_by=made_by)))


def _exported(path: Path, *, files: Files) -> ExportedFile:
    digest = sha256_of(files.iter_chunks(path))
    return ExportedFile(path=path.name, size=digest.num_bytes, sha256=digest.sha256)


def _manifest(
    artifact: Artifact, comparison: Comparison, exported: tuple[ExportedFile, ...], *, made_by: str
) -> Manifest:
    source = artifact.result.manifest
    assert comparison.review is not None  # what was just made
    return Manifest(
        format=manifest.FORMAT,
        version=manifest.VERSION,
        key=manifest.key_of_aligned(comparison.review, made_by=made_by),
        baseline=source.baseline,
        candidate=source.candidate,
        settings=comparison.settings,
        sources=source.sources,
        files=exported,
        aligned_from=artifact.sha256,
    )


def _discard(staged: Path, files: Files) -> None:
    with suppress(HostError):
        for path in files.list_all(staged):
            files.remove(path)
        files.remove_folder(staged)
