"""Explains why one call has no partner: its key, the candidates on the other side, the pairs around it (CP-3c)."""

from msgspec import Struct

from paritrace.compare.result import Unpaired
from paritrace.compare.rows import Side
from paritrace.errors import RequestError
from paritrace.reports.calls_table import CallsTable, TableCall
from paritrace.reports.wording import REASONS, count, module_or_root, short_function

CANDIDATES_SHOWN = 8


class WhyNot(Struct, frozen=True):
    """`paired_before` and `paired_after` are the nearest pairs of its stream; None at the end of it."""

    call: TableCall
    is_paired: bool
    reason: str  # the code; "" when paired
    reason_in_words: str
    same_key_here: int  # calls with this key on its own side, itself included
    same_key_there: int
    candidates: tuple[TableCall, ...]  # the first of those there
    none_was_unique: str
    paired_before: TableCall | None
    paired_after: TableCall | None


def why_not(table: CallsTable, call: TableCall, /) -> WhyNot:
    """Returns what is recorded about the correspondence of `call`; of a paired call, with what and on which basis."""
    other = Side.CANDIDATE if call.side is Side.BASELINE else Side.BASELINE
    place: dict[str, object] = {"key": call.key, "stream": call.stream, "scope": call.scope}
    here = table.count({"side": call.side} | place)
    there = table.matching({"side": other} | place)
    before, after = _neighbours(table.in_stream(call), call)
    return WhyNot(
        call=call,
        is_paired=call.is_paired,
        reason=call.reason or "",
        reason_in_words=REASONS[Unpaired(call.reason)] if call.reason else "",
        same_key_here=here,
        same_key_there=len(there),
        candidates=tuple(there[:CANDIDATES_SHOWN]),
        none_was_unique="" if call.is_paired else _none_was_unique(here=here, there=there),
        paired_before=before,
        paired_after=after,
    )


def _neighbours(stream: list[TableCall], call: TableCall) -> tuple[TableCall | None, TableCall | None]:
    before = [other for other in stream if other.record_id < call.record_id and other.is_paired]
    after = [other for other in stream if other.record_id > call.record_id and other.is_paired]
    return (before[-1] if before else None, after[0] if after else None)


def _none_was_unique(*, here: int, there: list[TableCall]) -> str:
    free = [other for other in there if not other.is_paired]
    if not there:
        return "no call of the other side has this key in this stream and scope"
    if not free:
        return f"{_calls_of_key(len(there))} of the other side, each paired with another call"
    return (
        f"{_calls_of_key(here)} on this side, {len(there):,} on the other, {len(free):,} of those without a partner; "
        "nothing recorded tells which belongs to this one"
    )


def _calls_of_key(number: int) -> str:
    return f"{count(number, 'call')} of this key"


def find_call(table: CallsTable, identity: str, /) -> TableCall:
    """Returns the call that `SIDE:RECORD`, `SIDE:SESSION:RECORD` or `RECORD` names.

    Raises:
        RequestError: Refused: `no_such_id` or, when several calls have this id, `ambiguous_id`.
    """
    side, session, record = _parsed(identity)
    wanted: dict[str, object] = {"record_id": record}
    if side is not None:
        wanted["side"] = side
    if session:
        wanted["session_id"] = session
    found = table.matching(wanted)
    if not found:
        raise RequestError(f"no call has the id {identity}", code="no_such_id", fix="ids stand in calls.parquet")
    if len(found) > 1:
        names = " or ".join(f"{call.side}:{call.session_id}:{call.record_id}" for call in found[:4])
        raise RequestError(f"{identity} names {len(found)} calls", code="ambiguous_id", fix=f"say {names}")
    return found[0]


def _parsed(identity: str) -> tuple[Side | None, str, int]:
    *place, record = identity.split(":")
    sides = set(Side)
    if not record.isascii() or not record.isdigit() or len(record) > 18 or len(place) > 2:
        raise _not_an_id(identity)
    if place and place[0] not in sides:
        raise _not_an_id(identity)
    return (Side(place[0]) if place else None, place[1] if len(place) == 2 else "", int(record))


def _not_an_id(identity: str) -> RequestError:
    return RequestError(
        f"{identity!r} is not the id of a call",
        code="no_such_id",
        fix="ids of calls are baseline:123 or candidate:123; those of a finding stand on its evidence",
    )


def as_text(answer: WhyNot, /) -> list[str]:
    """Returns the answer for a person, one statement a line."""
    call = answer.call
    lines = [
        f"{call.identity}  {short_function(call.function)} at {call.file}:{call.line}",
        f"in         {call.stream}; module {module_or_root(call.module)}",
        f"key        {call.key}",
    ]
    if answer.is_paired:
        order = ", in another order than its neighbours" if call.reordered else ""
        lines.append(f"paired     with {_other(call)}, basis {call.basis}{order}; unreviewed")
    else:
        lines.append(f"unpaired   {answer.reason}: {answer.reason_in_words}")
        lines.append(f"why        {answer.none_was_unique}")
    lines += [f"same key   {_state(candidate)}" for candidate in answer.candidates]
    if answer.same_key_there > len(answer.candidates):
        lines.append(f"same key   {answer.same_key_there - len(answer.candidates):,} more; all are in calls.parquet")
    lines.append(f"before     {_neighbour(answer.paired_before)}")
    lines.append(f"after      {_neighbour(answer.paired_after)}")
    return lines


def _other(call: TableCall) -> str:
    other = Side.CANDIDATE if call.side is Side.BASELINE else Side.BASELINE
    return f"{other}:{call.partner}"


def _state(call: TableCall) -> str:
    state = f"paired with {_other(call)} ({call.basis})" if call.is_paired else f"unpaired ({call.reason})"
    return f"{call.identity} at {call.file}:{call.line}, {state}"


def _neighbour(call: TableCall | None) -> str:
    if call is None:
        return "no pair: the stream begins or ends here"
    return (
        f"{call.identity} = {_other(call)}  {short_function(call.function)} at {call.file}:{call.line} ({call.basis})"
    )
