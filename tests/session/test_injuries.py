"""The rule of a rehearsal: what can be rehearsed, by when a promise has to be kept, whether it was."""

from paritrace.session.bounds import bounds_with
from paritrace.session.chaos.injuries import (
    PROMISES,
    Injury,
    Outcome,
    Promise,
    Rehearsal,
    bound_of,
    chosen,
    named,
    timed,
)

BOUNDS = bounds_with({})


def test_se19_everything_is_rehearsed_where_nothing_is_named() -> None:
    injuries, skipped = chosen((), world_size=2, capabilities=("save", "inspect"))
    assert set(injuries) == set(Injury) == set(PROMISES)
    assert skipped == ()


def test_se19_what_cannot_be_rehearsed_is_named_with_its_reason() -> None:
    injuries, skipped = chosen((), world_size=1, capabilities=("save",))
    assert {one.injury: one.why for one in skipped} == {
        Injury.KILL_TWO: "one rank only",
        Injury.KILL_IN_LOAD: "the workload has no inspect",
    }
    assert not {one.injury for one in skipped} & set(injuries)
    assert chosen((Injury.KILL,), world_size=1, capabilities=()) == ((Injury.KILL,), ())


def test_se21_every_timed_promise_has_a_bound_of_the_sessions_own_table() -> None:
    bounds = {one: bound_of(one, BOUNDS) for one in Promise}
    assert bounds.pop(Promise.NAMED) is None
    assert all(bound is not None and bound > 0 for bound in bounds.values())
    assert bounds[Promise.GONE] == 5.0
    assert bounds[Promise.FLAGGED] == 6.0
    assert bound_of(Promise.FLAGGED, bounds_with({"unresponsive": 2.0})) == 3.0


def test_se19_a_promise_is_kept_within_its_bound_only() -> None:
    for seconds, kept in ((0.5, True), (5.0, True), (5.1, False), (None, False)):
        found = timed(Injury.KILL, Promise.GONE, seconds, bounds=BOUNDS)
        assert (found.kept, found.bound_seconds) == (kept, 5.0)


def test_se12_of_one_killed_rank_its_name_is_asked_for_of_two_none() -> None:
    assert named(Injury.KILL, "rank 1", killed=[1]).kept
    assert not named(Injury.KILL, "undetermined", killed=[1]).kept
    assert named(Injury.KILL_TWO, "undetermined", killed=[0, 1]).kept
    assert not named(Injury.KILL_TWO, "rank 0", killed=[0, 1]).kept
    assert not named(Injury.KILL, None, killed=[1]).kept


def test_se19_a_rehearsal_is_kept_where_every_promise_is() -> None:
    good = Outcome(Injury.KILL, Promise.GONE, True, 1.0, 5.0)
    bad = Outcome(Injury.KILL, Promise.KNOWN, False, None, 1.0)
    assert Rehearsal("m:W", 2, (good,)).kept
    assert not Rehearsal("m:W", 2, (good, bad)).kept
