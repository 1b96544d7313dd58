"""The action `check`: one run against itself (AU-9, CP-25)."""

from paritrace.automation.protocol.evidence import Evidence, path_of
from paritrace.automation.protocol.records import Action, Operation, Request, Result
from paritrace.compare.checks_result import Checked


class CheckRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`run`: the run that is checked."""

    run: Evidence


class CheckResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="check"):
    """`checked` is the document of `paritrace check --json`."""

    checked: Checked


def check(request: CheckRequest, _operation: Operation) -> CheckResult:
    """Check a run; nothing is written.

    Raises:
        EvidenceError, HostError: Refused: the run cannot be opened.
    """
    from paritrace.compare.checks import check as check_run
    from paritrace.runs.reading import open_run

    with open_run(path_of(request.run)) as opened:
        return CheckResult(checked=check_run(opened))


ACTION = Action(
    name="check",
    summary="Check one run against itself: every invariant passes, fails or is not checkable.",
    request=CheckRequest,
    result=CheckResult,
    run=check,
)
