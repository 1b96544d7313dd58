"""The one table of bounds (SE-21)."""

import pytest

from paritrace.session.bounds import BOUNDS, bounds_with
from paritrace.session.commands import Kind
from paritrace.session.messages import RoundName
from paritrace.session.rounds import bound_of, rounds_of


def test_se21_every_bound_has_a_reason_and_its_name_once() -> None:
    assert all(bound.reason and bound.seconds >= 0 for bound in BOUNDS)
    assert len({bound.name for bound in BOUNDS}) == len(BOUNDS)


def test_se21_a_given_bound_takes_the_place_of_its_own_and_an_unknown_one_is_refused() -> None:
    assert bounds_with({"vote": 3.0})["vote"] == 3.0
    assert bounds_with({})["vote"] == 30.0
    with pytest.raises(KeyError):
        bounds_with({"votes": 3.0})


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("name", list(RoundName))
def test_se21_every_round_of_every_kind_has_a_bound(kind: Kind, name: RoundName) -> None:
    assert bounds_with({})[bound_of(kind, name)] > 0


def test_se6_every_live_kind_parks_before_its_barrier_and_inputs_are_prepared_before() -> None:
    parking = (RoundName.RESERVE, RoundName.PARK)
    assert rounds_of(Kind.STOP, {}, running=True) == (*parking, RoundName.VOTE, RoundName.ACT)
    assert rounds_of(Kind.INPUTS, {}, running=True)[:3] == (RoundName.PREPARE, *parking)
    assert rounds_of(Kind.CLOSE, {}, running=True) == (*parking, RoundName.CLOSE)
    whenever = (RoundName.VOTE, RoundName.ACT)
    assert rounds_of(Kind.LOAD, {}, running=True) == rounds_of(Kind.LOAD, {}, running=False) == whenever


def test_se9_inputs_that_come_with_values_are_prepared_before_ranks_park_or_vote() -> None:
    reference = {"inputs": {"text": "second"}}
    live = (RoundName.PREPARE, RoundName.RESERVE, RoundName.PARK, RoundName.VOTE, RoundName.ACT)
    assert rounds_of(Kind.CONFIGURE, reference, running=True) == live
    assert RoundName.PREPARE not in rounds_of(Kind.CONFIGURE, {"values": {}}, running=True)
    assert rounds_of(Kind.REBUILD, reference, running=False) == (RoundName.PREPARE, RoundName.VOTE, RoundName.ACT)
    assert bound_of(Kind.CONFIGURE, RoundName.PREPARE) == "prepare_inputs"
