"""The action `compare`: two runs into one kept comparison, every rank exported (AU-7)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from paritrace import __version__
from paritrace.automation.protocol.evidence import Evidence, path_of
from paritrace.automation.protocol.kept import KeptFiles, comparison_folder, kept_files
from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result, UniqueRanks
from paritrace.compare.policy import LoadedPolicy
from paritrace.compare.result import Comparison, Counts, Difference, Finding, Mark, RunRef, SideCoverage
from paritrace.errors import RequestError

MAX_FINDINGS = 100  # a result is bounded; all stand in the kept comparison
MAX_RANKS = 1024  # of which the first difference is told
Patterns = tuple[Annotated[str, Meta(min_length=1, max_length=4096)], ...]


class Steps(Struct, frozen=True, forbid_unknown_fields=True):
    """Half-open; without `end` to the last one."""

    first: Annotated[int, Meta(ge=0)]
    end: Annotated[int, Meta(ge=1)] | None = None


class CompareRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two runs to compare.

    `ranks`: those to compare, each of which both runs must have; null: all that both have. `ignore` and `strip_prefix`
    as of `paritrace compare`. `policy`: a file of rules to judge by. `formats`: what is written beside the document and
    its manifest; one file per rank where a format has such. `workers`: ranks compared at once.
    """

    output: FilePath
    baseline: Evidence
    candidate: Evidence
    ranks: UniqueRanks | None = None
    steps: Steps | None = None
    ignore: Patterns = ()
    strip_prefix: Patterns = ()
    policy: FilePath | None = None
    formats: Annotated[
        tuple[Literal["parquet", "text", "pftrace", "markdown", "html", "junit"], ...],
        Meta(extra_json_schema={"uniqueItems": True}),
    ] = ("parquet", "text", "pftrace")
    workers: Annotated[int, Meta(ge=1, le=1024)] = 1


class CompareResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="compare"):
    """What came of it. `findings` are the first of `num_findings`; the rest stands in the document of `comparison`.

    `first_differences`: of each rank in its own order of execution, as there is no order across ranks; of the first
    ranks, where `num_ranks_differing` is more.
    """

    comparison: KeptFiles
    baseline: RunRef
    candidate: RunRef
    ranks: tuple[int, ...]
    ranks_missing: tuple[int, ...]
    steps: tuple[int, ...]
    counts: Counts
    coverage: dict[str, SideCoverage]
    ladder: dict[str, Mark]
    ladder_step: int
    first_difference: Difference | None
    first_differences: tuple[Difference, ...]
    num_ranks_differing: int
    findings: tuple[Finding, ...]
    num_findings: int
    verdict: str


def compare(request: CompareRequest, operation: Operation) -> CompareResult:
    """Compare two runs, each opened and the requested ranks checked before anything is written.

    Raises:
        RequestError: Refused: `no_such_rank`, `bad_steps`, `bad_policy`, `output_not_fresh`.
        EvidenceError: Refused: a run cannot be opened.
        HostError: Refused or, once the output is begun, Failed.
    """
    from paritrace.automation.draws_beside import draws_beside
    from paritrace.compare.engine import compare as compare_runs
    from paritrace.compare.settings import Settings
    from paritrace.files import LOCAL
    from paritrace.process.pool import LocalPool
    from paritrace.reports.keeping import Keeping, keep
    from paritrace.reports.sources import sources_of
    from paritrace.runs.reading import open_run

    settings = Settings(
        steps=span_of(request.steps),
        ranks=request.ranks,
        ignore=request.ignore,
        strip_prefix=request.strip_prefix,
        policy=None if request.policy is None else _policy(Path(request.policy)),
    )
    paths = path_of(request.baseline), path_of(request.candidate)
    with open_run(paths[0]) as baseline, open_run(paths[1]) as candidate, draws_beside(baseline) as by:
        for side, run in (("baseline", baseline), ("candidate", candidate)):
            _require_ranks(request.ranks, (view.rank for view in run.sessions), side=side)
        output = operation.claim(request.output)
        pool = LocalPool(request.workers) if request.workers > 1 else None
        compared = compare_runs(baseline, candidate, settings, by=by, pool=pool)
        keeping = Keeping(
            comparison=compared.result,
            rows=compared.rows,
            token_rows=compared.token_rows,
            sources=(*sources_of(baseline, side="baseline"), *sources_of(candidate, side="candidate")),
            made_by=f"paritrace {__version__}",
            formats=(*request.formats, "json"),
            runs=(baseline, candidate),
        )
        folder = comparison_folder(output)
        return _result(keep(keeping, folder, files=LOCAL), kept_files(folder, files=LOCAL))


def _result(found: Comparison, kept: KeptFiles) -> CompareResult:
    return CompareResult(
        comparison=kept,
        baseline=found.baseline,
        candidate=found.candidate,
        ranks=found.ranks_compared,
        ranks_missing=found.ranks_missing,
        steps=found.steps_compared,
        counts=found.counts,
        coverage=found.coverage,
        ladder=found.ladder,
        ladder_step=found.ladder_step,
        first_difference=found.first_difference,
        first_differences=found.first_by_rank[:MAX_RANKS],
        num_ranks_differing=len(found.first_by_rank),
        findings=found.findings[:MAX_FINDINGS],
        num_findings=len(found.findings),
        verdict=found.verdict,
    )


def span_of(steps: Steps | None) -> tuple[int, int | None] | None:
    """The steps of a request as the rules take them. Raises `RequestError`, Refused: `bad_steps`."""
    if steps is None:
        return None
    if steps.end is not None and steps.end <= steps.first:
        raise RequestError(
            f"/steps: {steps.first} to {steps.end} holds no step", code="bad_steps", fix="`end` is not included"
        )
    return steps.first, steps.end


def _policy(path: Path) -> LoadedPolicy:
    from paritrace.compare.policy_file import parse_policy
    from paritrace.files import LOCAL

    return parse_policy(LOCAL.read(path), name=str(path))


def _require_ranks(wanted: tuple[int, ...] | None, there: Iterable[int], *, side: str) -> None:
    missing = sorted({*(wanted or ())} - {*there})
    if missing:
        raise RequestError(
            f"the {side} has no record of rank {', '.join(map(str, missing))}",
            code="no_such_rank",
            fix="ask for ranks that both runs recorded, or leave `ranks` out",
        )


ACTION = Action(
    name="compare",
    summary="Compare two runs: where they part, what could not be checked; every rank exported.",
    request=CompareRequest,
    result=CompareResult,
    run=compare,
    varying=("comparison.directory", "comparison.files", "comparison.sha256"),
    writes=True,
)
