"""States of a rank and the one table of what may follow what (SE-3)."""

from enum import StrEnum
from types import MappingProxyType

from paritrace.errors import InternalError


class RankState(StrEnum):
    """What a rank is in. Idle has one phase; how much is done is read from the step."""

    LOADING = "loading"
    IDLE = "idle"
    RUNNING = "running"
    SAVING = "saving"
    EXPORTING_PREVIEW = "exporting_preview"
    ERROR = "error"
    CLOSING = "closing"


_LEADS_TO = MappingProxyType(
    {
        RankState.LOADING: {RankState.IDLE, RankState.EXPORTING_PREVIEW},
        RankState.IDLE: {RankState.RUNNING, RankState.SAVING, RankState.LOADING, RankState.EXPORTING_PREVIEW},
        RankState.RUNNING: {RankState.IDLE, RankState.SAVING},
        RankState.SAVING: {RankState.IDLE, RankState.EXPORTING_PREVIEW},
        RankState.EXPORTING_PREVIEW: {RankState.IDLE},
        RankState.ERROR: set[RankState](),
        RankState.CLOSING: set[RankState](),
    }
)


def may_follow(state: RankState, then: RankState, /) -> bool:
    """Return whether a rank in `state` may enter `then`: Closing is terminal, Error is reached from all others."""
    if state is then:
        return True
    if state is RankState.CLOSING:
        return False
    return then in {RankState.ERROR, RankState.CLOSING} or then in _LEADS_TO[state]


def entered(state: RankState, then: RankState, /) -> RankState:
    """Return the new state.

    Raises InternalError (`illegal_transition`, Refused): nothing has changed.
    """
    if not may_follow(state, then):
        raise InternalError(
            f"a rank in state {state.value} cannot enter {then.value}",
            code="illegal_transition",
            fix="report it with the session's journal.jsonl",
        )
    return then
