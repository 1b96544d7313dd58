"""The one table of transitions (SE-3)."""

import itertools

import pytest

from paritrace.errors import InternalError, Outcome
from paritrace.session.states import RankState, entered, may_follow

S = RankState
TABLE = {
    (S.LOADING, S.IDLE),
    (S.LOADING, S.EXPORTING_PREVIEW),
    (S.IDLE, S.RUNNING),
    (S.IDLE, S.SAVING),
    (S.IDLE, S.LOADING),
    (S.IDLE, S.EXPORTING_PREVIEW),
    (S.RUNNING, S.IDLE),
    (S.RUNNING, S.SAVING),
    (S.SAVING, S.IDLE),
    (S.SAVING, S.EXPORTING_PREVIEW),
    (S.EXPORTING_PREVIEW, S.IDLE),
}


@pytest.mark.parametrize(("state", "then"), list(itertools.product(S, S)))
def test_se3_the_table_is_that_of_the_specification(state: RankState, then: RankState) -> None:
    always = state is then or (state is not S.CLOSING and then in {S.ERROR, S.CLOSING})
    assert may_follow(state, then) == (always or (state, then) in TABLE)


def test_se3_an_illegal_transition_raises_and_changes_nothing() -> None:
    with pytest.raises(InternalError) as raised:
        entered(S.CLOSING, S.IDLE)
    assert (raised.value.code, raised.value.outcome) == ("illegal_transition", Outcome.REFUSED)
