"""The action `attempts-summarize`: what configurations did at their tasks (AU-9, AT-17)."""

from pathlib import Path

from paritrace.attempts.result import Summary
from paritrace.automation.protocol.actions.attempts import AttemptsRequest, files_of
from paritrace.automation.protocol.records import Action, Operation, Result


class AttemptsSummarizeRequest(AttemptsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`details`: every attempt and request too."""

    details: bool = False


class AttemptsSummarizeResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="attempts-summarize"):
    """`summary` is the document of `paritrace attempts summarize --json`."""

    summary: Summary


def attempts_summarize(request: AttemptsSummarizeRequest, _operation: Operation) -> AttemptsSummarizeResult:
    """Summarise a manifest; nothing is written.

    Raises:
        RequestError: Refused: `bad_attempts_manifest` and what a file says of itself.
        HostError: Refused: `missing_extra`, or a file cannot be read.
    """
    from paritrace.attempts.api import load, require_scipy, summarize

    require_scipy()
    card, gate = files_of(request)
    summary = summarize(load(Path(request.manifest)), details=request.details, card=card, gate=gate)
    return AttemptsSummarizeResult(summary=summary)


ACTION = Action(
    name="attempts-summarize",
    summary="Summarise attempts at tasks: coverage, outcomes, usage, cost, warnings.",
    request=AttemptsSummarizeRequest,
    result=AttemptsSummarizeResult,
    run=attempts_summarize,
)
