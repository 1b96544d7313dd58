"""The action `align`: a person's or program's review of pairs, applied to a kept comparison (AU-8)."""

from pathlib import Path

from paritrace import __version__
from paritrace.automation.protocol.actions.compare import CompareResult
from paritrace.automation.protocol.kept import KeptFiles, comparison_folder, directory_of, kept_files
from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result, Sha256
from paritrace.compare.result import Counts


class AlignResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="align"):
    """`artifact`: the reviewed comparison. `source_sha256`: of the manifest of the one it was made of."""

    artifact: KeptFiles
    sha256: Sha256
    source_sha256: Sha256
    map_sha256: Sha256
    counts: Counts
    verdict: str


Compared = FilePath | CompareResult | AlignResult


class AlignRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`artifact`: the folder of a kept comparison, or the result of `compare` or `align`. `alignment_map`: a file."""

    artifact: Compared
    alignment_map: FilePath
    output: FilePath


def folder_of(compared: Compared) -> Path:
    """Return the folder of a kept comparison that a request names.

    Raises:
        EvidenceError: Refused, `comparison_changed`.
    """
    from paritrace.files import LOCAL

    match compared:
        case CompareResult():
            return directory_of(compared.comparison, files=LOCAL)
        case AlignResult():
            return directory_of(compared.artifact, files=LOCAL)
        case str():
            return Path(compared)


def align(request: AlignRequest, operation: Operation) -> AlignResult:
    """Apply a map; the artifact is only read.

    Raises:
        RequestError: Refused: `no_result`, `bad_alignment_map` with every problem, `output_not_fresh`.
        EvidenceError: Refused: `damaged_result`, `comparison_changed`.
    """
    from paritrace.files import LOCAL
    from paritrace.reports.aligning import open_artifact, reviewed, write_reviewed

    artifact = open_artifact(folder_of(request.artifact), files=LOCAL)
    applied = reviewed(artifact, Path(request.alignment_map), files=LOCAL)
    folder = comparison_folder(operation.claim(request.output))
    found = write_reviewed(applied, folder, files=LOCAL, made_by=f"paritrace {__version__}")
    kept = kept_files(folder, files=LOCAL)
    return AlignResult(
        artifact=kept,
        sha256=kept.sha256,
        source_sha256=applied.review.source_sha256,
        map_sha256=applied.review.map_sha256,
        counts=found.counts,
        verdict=found.verdict,
    )


ACTION = Action(
    name="align",
    summary="Apply an alignment map to a kept comparison, as a fresh one.",
    request=AlignRequest,
    result=AlignResult,
    run=align,
    varying=("artifact.directory", "artifact.files", "artifact.sha256", "sha256"),
    writes=True,
)
