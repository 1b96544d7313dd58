"""The action `attempts-compare`: what the evidence supports about two configurations (AU-9, AT-17)."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from paritrace.attempts.result import AttemptsComparison
from paritrace.automation.protocol.actions.attempts import AttemptsRequest, files_of
from paritrace.automation.protocol.records import Action, Operation, Result

ConfigurationId = Annotated[str, Meta(min_length=1, max_length=1024)]


class AttemptsCompareRequest(AttemptsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`baseline`, `candidate`: ids of configurations; null: the primary analysis of the manifest, else all pairs."""

    baseline: ConfigurationId | None = None
    candidate: ConfigurationId | None = None


class AttemptsCompareResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="attempts-compare"):
    """`comparison` is the document of `paritrace attempts compare --json`."""

    comparison: AttemptsComparison


def attempts_compare(request: AttemptsCompareRequest, _operation: Operation) -> AttemptsCompareResult:
    """Compare configurations of a manifest; nothing is written.

    Raises:
        RequestError: Refused: `bad_attempts_manifest`, `no_such_configuration` and what a file says of itself.
        HostError: Refused: `missing_extra`, or a file cannot be read.
    """
    from paritrace.attempts.api import compare, load, require_scipy

    require_scipy()
    card, gate = files_of(request)
    loaded = load(Path(request.manifest))
    found = compare(loaded, baseline=request.baseline, candidate=request.candidate, card=card, gate=gate)
    return AttemptsCompareResult(comparison=found)


ACTION = Action(
    name="attempts-compare",
    summary="Compare configurations on the tasks they have in common, and say what the evidence supports.",
    request=AttemptsCompareRequest,
    result=AttemptsCompareResult,
    run=attempts_compare,
)
