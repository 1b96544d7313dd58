"""The action `attempts-explain`: the attempts, files and lines behind a figure (AU-9, P9)."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from paritrace.attempts.explaining import Explained
from paritrace.automation.protocol.actions.attempts import rate_card_of
from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result


class AttemptsExplainRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`figure`: as the summary's JSON names it, such as `CONFIGURATION.tokens.input_tokens`."""

    manifest: FilePath
    figure: Annotated[str, Meta(min_length=1, max_length=4096)]
    rate_card: FilePath | None = None


class AttemptsExplainResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="attempts-explain"):
    """`explanation` is the document of `paritrace attempts explain --json`."""

    explanation: Explained


def attempts_explain(request: AttemptsExplainRequest, _operation: Operation) -> AttemptsExplainResult:
    """Explain a figure of a manifest; nothing is written.

    Raises:
        RequestError: Refused: `bad_attempts_manifest`, `no_such_figure` with those that there are.
        HostError: Refused: a file cannot be read.
    """
    from paritrace.attempts.api import explain, load

    card = rate_card_of(request.rate_card)
    return AttemptsExplainResult(explanation=explain(load(Path(request.manifest)), request.figure, card=card))


ACTION = Action(
    name="attempts-explain",
    summary="List the attempts, files and lines behind a figure of a manifest.",
    request=AttemptsExplainRequest,
    result=AttemptsExplainResult,
    run=attempts_explain,
)
