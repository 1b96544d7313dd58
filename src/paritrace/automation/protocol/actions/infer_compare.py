"""The action `infer-compare`: two arms of inference runs (AU-9, IN-17)."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result
from paritrace.inference.comparison.result import InferenceComparison
from paritrace.inference.comparison.vocabulary import Design, Scale

Ratio = Literal["log", "means"]
Name = Annotated[str, Meta(min_length=1, max_length=1024)]


class InferCompareRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`baseline`, `candidate`: each a run, or a folder of runs; the rest as of `paritrace infer compare`.

    `objectives` are its `--slo`.
    """

    baseline: FilePath
    candidate: FilePath
    design: Design | None = None
    treatments: tuple[Name, ...] = ()
    source: Name | None = None
    gates: tuple[Name, ...] = ()
    objectives: tuple[Name, ...] = ()
    ratio: Ratio = "log"


class InferCompareResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="infer-compare"):
    """`comparison` is the document of `paritrace infer compare --json`."""

    comparison: InferenceComparison


def infer_compare(request: InferCompareRequest, _operation: Operation) -> InferCompareResult:
    """Compare two arms; nothing is written.

    Raises:
        RequestError, EvidenceError, HostError: Refused: `missing_extra`, or what was asked or given does not fit.
    """
    from paritrace.inference.comparison.comparing import Asked, compared
    from paritrace.inference.comparison.gates import gate_of
    from paritrace.inference.comparison.loading import arm_of
    from paritrace.inference.comparison.objectives import objectives_of
    from paritrace.inference.comparison.requirements import require_scipy

    require_scipy()
    gates = tuple(gate_of(gate) for gate in request.gates)
    asked = Asked(
        design=request.design,
        treatments=request.treatments,
        gates=gates,
        objectives=objectives_of(request.objectives),
        ratio=Scale.LOG_RATIO if request.ratio == "log" else Scale.MEANS_RATIO,
    )
    baseline = arm_of(Path(request.baseline), source=request.source, objectives=asked.objectives)
    candidate = arm_of(Path(request.candidate), source=request.source, objectives=asked.objectives)
    return InferCompareResult(comparison=compared(baseline, candidate, asked))


ACTION = Action(
    name="infer-compare",
    summary="Compare two arms of inference runs: first whether they can be compared, then their metrics and gates.",
    request=InferCompareRequest,
    result=InferCompareResult,
    run=infer_compare,
)
