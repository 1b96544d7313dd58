"""The action `why-not`: why a call of a comparison has no partner (AU-9, P2)."""

from typing import Annotated

from msgspec import Meta

from paritrace.automation.protocol.actions.align import Compared, folder_of
from paritrace.automation.protocol.records import Action, Operation, Request, Result
from paritrace.reports.why_not import WhyNot


class WhyNotRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`comparison`: as of `align`. `id`: a call, for example `candidate:213`."""

    comparison: Compared
    id: Annotated[str, Meta(min_length=1, max_length=1024)]


class WhyNotResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="why-not"):
    """`answer` is the document of `paritrace why-not --json`."""

    answer: WhyNot


def why_not(request: WhyNotRequest, _operation: Operation) -> WhyNotResult:
    """Say why a call has no partner; nothing is written.

    Raises:
        RequestError: Refused: `no_result`, `no_such_id`.
        EvidenceError: Refused: `damaged_result`, `comparison_changed`.
    """
    from paritrace.files import LOCAL
    from paritrace.reports import why_not as answers
    from paritrace.reports.calls_table import CallsTable
    from paritrace.reports.kept_result import open_result, required_calls_path

    result = open_result(folder_of(request.comparison), files=LOCAL)
    table = CallsTable(required_calls_path(result, files=LOCAL))
    return WhyNotResult(answer=answers.why_not(table, answers.find_call(table, request.id)))


ACTION = Action(
    name="why-not",
    summary="Say why a call has no partner.",
    request=WhyNotRequest,
    result=WhyNotResult,
    run=why_not,
)
