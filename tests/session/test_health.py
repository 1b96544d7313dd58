"""Heartbeat and progress: findings first, a fail-stop only past a deadline (SE-13)."""

import pytest

from paritrace.session.coordinator_events import FailStop
from paritrace.session.coordinator_record import Phase
from paritrace.session.health import stalled_beyond
from paritrace.session.messages import Beat
from paritrace.session.states import RankState
from tests.session.driving import Driven

RUNNING, IDLE, LOADING = RankState.RUNNING, RankState.IDLE, RankState.LOADING


def beat(state: RankState, **more: float) -> Beat:
    return Beat(generation=0, rank=0, epoch=0, state=state, step=3, pending=0, config_revision=0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        (beat(RUNNING, progress_age_seconds=29.0), None),
        (beat(RUNNING, progress_age_seconds=31.0), 30.0),
        (beat(RUNNING, progress_age_seconds=31.0, step_p99_seconds=4.0), None),  # ten times its p99 is longer
        (beat(RUNNING, progress_age_seconds=41.0, step_p99_seconds=4.0), 40.0),
        (beat(IDLE, progress_age_seconds=9999.0), None),  # who idles need not move
        (beat(LOADING, progress_age_seconds=31.0, deadline_seconds=600.0), None),  # it has declared a longer one
        (beat(LOADING, progress_age_seconds=6.0, deadline_seconds=5.0), 5.0),
    ],
)
def test_se13_after_how_long_without_progress_a_rank_is_stalled(said: Beat, limit: float | None) -> None:
    assert stalled_beyond(said, stalled_seconds=30.0) == limit


def test_se13_a_missed_heartbeat_is_a_finding_and_over_with_the_next() -> None:
    driven = Driven().built()
    assert driven.timers()["beat:1"] == 5.0
    driven.elapse("beat:1")
    assert list(driven.state.ranks[1].findings) == ["unresponsive: no heartbeat for 5 s"]
    assert driven.state.phase is Phase.READY
    driven.beat(1, IDLE)
    assert not driven.state.ranks[1].findings
    assert [(r["finding"], r["words"]) for r in driven.records("finding")] == [
        ("unresponsive", "no heartbeat for 5 s"),
        ("unresponsive", "over"),
    ]


def test_se13_a_finding_is_never_fatal_without_a_configured_deadline() -> None:
    driven = Driven().built()
    driven.elapse("beat:0")
    assert "fail_stop:0" not in driven.timers()


def test_se13_past_the_configured_deadline_a_finding_is_a_fail_stop() -> None:
    driven = Driven(fail_stop=20.0).built()
    driven.beat(0, RUNNING, progress_age_seconds=100.0)
    assert driven.timers()["fail_stop:0"] == 20.0
    actions = driven.elapse("fail_stop:0")
    assert [a.code for a in actions if isinstance(a, FailStop)] == ["stalled"]
    assert driven.state.phase is Phase.ERROR


def test_se13_what_is_over_in_time_is_no_fail_stop() -> None:
    driven = Driven(fail_stop=20.0).built()
    driven.beat(0, RUNNING, progress_age_seconds=100.0)
    driven.beat(0, RUNNING, progress_age_seconds=0.1)
    assert "fail_stop:0" not in driven.timers()


def test_se13_who_has_not_joined_or_is_gone_is_not_unresponsive() -> None:
    driven = Driven()
    driven.elapse("beat:0")
    assert not driven.state.ranks[0].findings
