"""The action `verify`: everything a run or a store names, hashed and read again (AU-9, EV-16, ST-13)."""

from typing import Literal

from paritrace.automation.protocol.evidence import Evidence, path_of
from paritrace.automation.protocol.records import Action, Operation, Request, Result
from paritrace.runs.verify import Verification
from paritrace.store.verifying import StoreVerification


class VerifyRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`run`: a run directory, an archive, a store or its address."""

    run: Evidence


class VerifyResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="verify"):
    """`run` is the document of `paritrace runs verify --json`, `store` that of `paritrace store verify --json`.

    What `kind` names is there, the other is null.
    """

    kind: Literal["run", "store"]
    verdict: str
    run: Verification | None = None
    store: StoreVerification | None = None


def verify(request: VerifyRequest, _operation: Operation) -> VerifyResult:
    """Verify a run or a store; nothing is written.

    Raises:
        EvidenceError, HostError: Refused: it cannot be opened.
    """
    from paritrace.files import LOCAL
    from paritrace.runs.reading import open_run
    from paritrace.runs.stored import address_of, is_published
    from paritrace.runs.verify import verify as verify_run
    from paritrace.store.targets import open_target
    from paritrace.store.verifying import verify_store

    path = path_of(request.run)
    if is_published(path, files=LOCAL):
        store = verify_store(open_target(address_of(path)))
        return VerifyResult(kind="store", verdict=store.verdict, store=store)
    with open_run(path) as opened:
        run = verify_run(opened)
    return VerifyResult(kind="run", verdict=run.verdict, run=run)


ACTION = Action(
    name="verify",
    summary="Hash and read again everything that a run or a store names.",
    request=VerifyRequest,
    result=VerifyResult,
    run=verify,
)
