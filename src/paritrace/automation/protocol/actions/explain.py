"""The action `explain`: the evidence behind a record, a difference or a number of a comparison (AU-9, P9)."""

from typing import Annotated

from msgspec import Meta

from paritrace.automation.protocol.actions.align import Compared, folder_of
from paritrace.automation.protocol.records import Action, Operation, Request, Result
from paritrace.reports.explanation import Explanation


class ExplainRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`comparison`: as of `align`. `id`: as of `paritrace explain`, such as `F1`, `counts.paired`, `baseline:12`."""

    comparison: Compared
    id: Annotated[str, Meta(min_length=1, max_length=1024)]


class ExplainResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="explain"):
    """`explanation` is the document of `paritrace explain --json`."""

    explanation: Explanation


def explain(request: ExplainRequest, _operation: Operation) -> ExplainResult:
    """Explain one line of a comparison; nothing is written.

    Raises:
        RequestError: Refused: `no_result`, `no_such_id` with what can be explained.
        EvidenceError: Refused: `damaged_result`, `comparison_changed`.
    """
    from paritrace.files import LOCAL
    from paritrace.reports.explanation import explain as explained
    from paritrace.reports.kept_result import open_result

    result = open_result(folder_of(request.comparison), files=LOCAL)
    return ExplainResult(explanation=explained(result, request.id, files=LOCAL))


ACTION = Action(
    name="explain",
    summary="List the files, lines and record ids behind a line, a figure or a call of a comparison.",
    request=ExplainRequest,
    result=ExplainResult,
    run=explain,
)
