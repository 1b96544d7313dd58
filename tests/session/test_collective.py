"""What may be said of the job as a whole (SE-11, SE-31)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.session.collective import Report, laggard_of, view_of
from paritrace.session.states import RankState

IDLE, RUNNING, SAVING, PREVIEW = "idle", "running", "saving", "exporting_preview"


def reports(*pairs: tuple[str | None, int]) -> list[Report]:
    return [Report(state, epoch) for state, epoch in pairs]


@pytest.mark.parametrize(
    ("said", "laggard"),
    [
        ([(None, 0), (None, 0)], None),  # nobody has reported
        ([(None, 0), (None, 0), (IDLE, 0)], 2),  # rank 0 is silent: the lowest that reported
        ([(IDLE, 1), (RUNNING, 0), (RUNNING, 0)], 1),  # the lowest whose state differs from rank 0's
        ([(IDLE, 1), (IDLE, 1), (None, 0)], 2),  # silence differs
        ([(IDLE, 1), ("dancing", 1)], 1),  # a text that we do not know counts as silence
        ([("dancing", 1), (IDLE, 1)], 1),
        ([(IDLE, 2), (IDLE, 1), (IDLE, 1)], 1),  # equal states: the first whose epoch is behind
        ([(IDLE, 1), (IDLE, 2)], 0),
        ([(IDLE, 2), (IDLE, 2)], None),
    ],
)
def test_se31_who_is_named_as_laggard(said: list[tuple[str | None, int]], laggard: int | None) -> None:
    assert laggard_of(reports(*said)) == laggard


def test_se11_a_state_of_all_ranks_is_a_fact_of_the_job() -> None:
    view = view_of(reports((RUNNING, 3), (RUNNING, 3)), state=RankState.IDLE, epoch=2)
    assert (view.state, view.epoch, view.agreed, view.laggard) == (RankState.RUNNING, 3, True, None)


@pytest.mark.parametrize("said", [[(RUNNING, 3), (IDLE, 3)], [(RUNNING, 3), (RUNNING, 2)], [(None, 0), (RUNNING, 3)]])
def test_se11_else_the_last_agreed_state_stands_and_the_laggard_is_named(said: list[tuple[str | None, int]]) -> None:
    view = view_of(reports(*said), state=RankState.IDLE, epoch=2)
    assert (view.state, view.epoch, view.agreed, view.laggard) == (RankState.IDLE, 2, False, 1)


@pytest.mark.parametrize("alone", [SAVING, PREVIEW])
def test_se11_what_rank_0_does_alone_is_an_operation_and_nobody_lags(alone: str) -> None:
    view = view_of(reports((alone, 3), (IDLE, 3), (IDLE, 3)), state=RankState.IDLE, epoch=3)
    assert (view.operation, view.laggard, view.agreed) == (f"rank 0: {alone}", None, False)
    assert view_of(reports((IDLE, 3), (alone, 3)), state=RankState.IDLE, epoch=3).operation is None
    assert view_of(reports((alone, 3)), state=RankState.IDLE, epoch=3).agreed


@given(st.lists(st.tuples(st.sampled_from([None, "?", *(s.value for s in RankState)]), st.integers(0, 2)), min_size=1))
def test_se11_a_view_is_agreed_only_where_every_report_says_it(said: list[tuple[str | None, int]]) -> None:
    view = view_of(reports(*said), state=RankState.CLOSING, epoch=9)
    assert view.agreed == (set(said) == {(view.state.value, view.epoch)})
    assert view.laggard is None or not view.agreed
