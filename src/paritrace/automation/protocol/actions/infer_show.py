"""The action `infer-show`: what the inference evidence of a run holds (AU-9, IN-8)."""

from pathlib import Path

from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result
from paritrace.inference.result import ShowReport


class InferShowRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`run`: a run directory with an inference artifact."""

    run: FilePath


class InferShowResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="infer-show"):
    """`shown` is the document of `paritrace infer show --json`."""

    shown: ShowReport


def infer_show(request: InferShowRequest, _operation: Operation) -> InferShowResult:
    """Show an artifact; nothing is written.

    Raises:
        EvidenceError, HostError: Refused: it cannot be read.
    """
    from paritrace.inference.show_report import show_artifact

    return InferShowResult(shown=show_artifact(Path(request.run)))


ACTION = Action(
    name="infer-show",
    summary="Show what the inference evidence of a run holds: events, components, conflicts, losses.",
    request=InferShowRequest,
    result=InferShowResult,
    run=infer_show,
)
