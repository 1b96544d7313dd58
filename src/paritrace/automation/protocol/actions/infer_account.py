"""The action `infer-account`: the device time of an inference run, added up (AU-9, IN-9)."""

from pathlib import Path

from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result
from paritrace.inference.result import AccountReport
from paritrace.inference.shares import ShareModel


class InferAccountRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`run`: a run directory with an inference artifact. `shares`: the model by which busy time is shared out."""

    run: FilePath
    shares: ShareModel | None = None


class InferAccountResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="infer-account"):
    """`account` is the document of `paritrace infer account --json`."""

    account: AccountReport


def infer_account(request: InferAccountRequest, _operation: Operation) -> InferAccountResult:
    """Add up device time; nothing is written.

    Raises:
        EvidenceError, HostError: Refused: the artifact cannot be read.
    """
    from paritrace.inference.account_report import account_artifact

    return InferAccountResult(account=account_artifact(Path(request.run), model=request.shares))


ACTION = Action(
    name="infer-account",
    summary="Add up the device time of an inference run, for each device and clock apart, and what was lost.",
    request=InferAccountRequest,
    result=InferAccountResult,
    run=infer_account,
)
