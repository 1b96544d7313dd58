"""Which evidence of a request counts: a result before a record, and what is kept of their conflict (AT-3, AT-21)."""

from msgspec import Struct

from paritrace.attempts.accounts import Accounting
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.manifest import Execution, Request, RequestState
from paritrace.attempts.origins import Origin
from paritrace.attempts.pricing import cost_figures
from paritrace.attempts.reading import Seen, Unusable
from paritrace.attempts.usage import token_figures


class RequestFacts(Struct, frozen=True):
    """What is known of one request after all its evidence was weighed."""

    request_id: str
    state: RequestState
    execution: Execution
    accounting: Accounting | None
    gaps: tuple[Noted, ...] = ()
    origins: tuple[Origin, ...] = ()


def facts_of_request(
    request: Request, *, result: Seen | Unusable | None, record: Seen | Unusable | None
) -> RequestFacts:
    """Returns the facts of a request.

    Args:
        request: what the manifest says of it.
        result: what its result file says; None where none was named, or where the file is not there.
        record: the same of its run record.

    The result is authoritative. The record's end line stands in where there is no usable result. Where both account and
    disagree, the result wins and `record_result_conflict` is kept.
    """
    gaps = list(request.gaps)
    first = _usable(result, request, gaps, origin=_origin(request.result))
    second = _usable(record, request, gaps, origin=_origin(request.record))
    gaps += _absences(request, result=result, record=record)
    if first is not None and second is not None and second.ended and _disagree(first, second):
        gaps.append(Noted(AttemptGap.RECORD_RESULT_CONFLICT, origin=_origin(request.record)))
    if second is not None and (second.torn or not second.ended):
        gaps.append(Noted(AttemptGap.RECORD_TRUNCATED, origin=_origin(request.record)))
    chosen = first or (second if second is not None and second.ended else None)
    if chosen is None:
        return _told_by_manifest(request, gaps, started=second is not None, unreadable=_is_unreadable(result, record))
    if chosen.raised and chosen.accounting is None:
        gaps.append(Noted(AttemptGap.RAISED_WITHOUT_ACCOUNTING, origin=_origin(request.record)))
    return RequestFacts(
        request.request_id,
        RequestState.RESULT if first is not None else RequestState.RECORD_ONLY,
        chosen.execution,
        chosen.accounting,
        tuple(gaps),
        tuple(one for one in (_origin(request.result), _origin(request.record), request.origin) if one is not None),
    )


def _told_by_manifest(request: Request, gaps: list[Noted], *, started: bool, unreadable: bool) -> RequestFacts:
    """What the manifest itself says, where no file stands behind the request or none can be used."""
    by_files = request.result is not None or request.record is not None
    if started:
        state = RequestState.STARTED_ONLY
    elif unreadable:
        state = RequestState.UNREADABLE
    elif request.state is not None:
        state = request.state
    else:
        state = RequestState.MISSING if by_files or request.accounting is None else RequestState.RESULT
    accounting = None if by_files and state is not request.state else request.accounting
    origins = (request.origin,) if request.origin is not None else ()
    return RequestFacts(request.request_id, state, request.execution, accounting, tuple(gaps), origins)


def _usable(seen: Seen | Unusable | None, request: Request, gaps: list[Noted], *, origin: Origin | None) -> Seen | None:
    """What a file says if it speaks of this request; else the reason goes to `gaps`."""
    match seen:
        case None:
            return None
        case Unusable(reason=reason, detail=detail):
            gaps.append(Noted(reason, detail=detail, origin=origin))
            return None
        case Seen(request_id=name) if name is not None and name != request.request_id:
            gaps.append(Noted(AttemptGap.IDENTITY_MISMATCH, detail="the file names another request", origin=origin))
            return None
        case Seen():
            return seen


def _absences(request: Request, *, result: object, record: object) -> list[Noted]:
    found: list[Noted] = []
    if request.result is not None and result is None:
        found.append(Noted(AttemptGap.RESULT_MISSING, origin=_origin(request.result)))
    if request.record is not None and record is None:
        found.append(Noted(AttemptGap.RECORD_MISSING, origin=_origin(request.record)))
    return found


def _is_unreadable(result: object, record: object) -> bool:
    return isinstance(result, Unusable) or isinstance(record, Unusable)


def _disagree(result: Seen, record: Seen) -> bool:
    """Whether both account and one figure differs; what only one of them knows is no conflict."""
    if result.execution is not record.execution and Execution.UNKNOWN not in (result.execution, record.execution):
        return True
    if result.accounting is None or record.accounting is None:
        return False
    mine, theirs = token_figures(result.accounting), token_figures(record.accounting)
    if any(mine[kind].known and theirs[kind].known and mine[kind].low != theirs[kind].low for kind in mine):
        return True
    costs, others = cost_figures(result.accounting), cost_figures(record.accounting)
    return any(costs[basis].low != others[basis].low for basis in costs.keys() & others.keys())


def _origin(source: str | None) -> Origin | None:
    return None if source is None else Origin(source)
