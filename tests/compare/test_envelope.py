"""What an envelope finds, and where it judges nothing (CP-10, CP-10a); its false rates: test_false_rates.py."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from paritrace.compare.envelope import MIN_DRAWS, Envelope, Place
from paritrace.compare.envelope import calibrate as calibrate_table
from paritrace.compare.strengths import Strengths, of_samples
from paritrace.compare.tabulated import tabulated

PLACES: list[Place] = [(call, "o", 0) for call in range(60)]


def calibrate(draws: Mapping[Place, Sequence[Strengths | None]]) -> Envelope | None:
    table = tabulated(draws)
    return None if table is None else calibrate_table(table)


def draw(random: np.random.Generator, *, tail: float) -> dict[Place, Strengths]:
    """One draw: each place has a size of its own, errors are correlated from place to place, with heavy tails."""
    common = random.standard_t(tail) if tail else random.normal()
    found: dict[Place, Strengths] = {}
    for number, place in enumerate(PLACES):
        own = random.standard_t(tail) if tail else random.normal()
        scale = 10.0 ** (-8 + number % 5)
        wobble = float(np.exp(0.3 * common + 0.2 * own))
        bias = abs(float(random.normal()))
        found[place] = Strengths(scale * wobble, 0.1 * scale * wobble * abs(float(random.normal())), bias)
    return found


def envelope(random: np.random.Generator, num_draws: int, *, tail: float) -> Envelope:
    draws = [draw(random, tail=tail) for _ in range(num_draws)]
    made = calibrate({place: [found[place] for found in draws] for place in PLACES})
    assert made is not None
    return made


def exceeds(made: Envelope, candidate: dict[Place, Strengths]) -> list[Place]:
    found = {place: made.excess(place, strength) for place, strength in candidate.items()}
    return [place for place, excess in found.items() if excess is not None and excess.beyond]


def test_cp10a_an_error_a_hundred_times_the_draws_is_found_and_nothing_else() -> None:
    random = np.random.default_rng(1)
    found = 0
    for _ in range(50):
        made = envelope(random, 8, tail=0.0)
        candidate = draw(random, tail=0.0)
        hit = PLACES[17]
        candidate[hit] = candidate[hit]._replace(error=100 * candidate[hit].error)
        found += hit in exceeds(made, candidate)
    assert found == 50


def test_cp10a_a_bias_below_the_size_of_round_off_is_found() -> None:
    random = np.random.default_rng(2)
    made = envelope(random, 8, tail=0.0)
    candidate = draw(random, tail=0.0)
    candidate[PLACES[3]] = candidate[PLACES[3]]._replace(bias=16.0)
    excess = made.excess(PLACES[3], candidate[PLACES[3]])
    assert excess is not None
    assert (excess.beyond, excess.figure, excess.ratio) == (True, "bias", 16.0)


@pytest.mark.parametrize(("share", "beyond"), [(1.0, True), (0.1, False)])
def test_cp10a_a_shift_far_smaller_than_what_draws_move_is_no_claim(share: float, beyond: bool) -> None:
    """One scalar that rounds otherwise scales a whole gradient: many of its own standard errors, few of the draws'."""
    random = np.random.default_rng(2)
    draws = [draw(random, tail=0.0) for _ in range(8)]
    made = calibrate({place: [found[place] for found in draws] for place in PLACES})
    assert made is not None
    largest = max(found[PLACES[3]].error for found in draws)
    excess = made.excess(PLACES[3], Strengths(share * largest, 0.0, 26.0))
    assert excess is not None
    assert excess.beyond is beyond


def test_cp10_too_few_draws_make_no_envelope() -> None:
    random = np.random.default_rng(3)
    draws = [draw(random, tail=0.0) for _ in range(MIN_DRAWS - 1)]
    assert calibrate({place: [found[place] for found in draws] for place in PLACES}) is None


def test_cp10_draws_that_all_agree_have_no_width_and_judge_nothing() -> None:
    same = Strengths(0.0, 0.0, 0.0)
    assert calibrate({place: [same] * 8 for place in PLACES}) is None
    random = np.random.default_rng(4)
    draws = [draw(random, tail=0.0) for _ in range(8)]
    table = {place: [found[place] for found in draws] for place in PLACES}
    table[PLACES[0]] = [same] * 8
    made = calibrate(table)
    assert made is not None
    assert made.excess(PLACES[0], Strengths(1.0, 1.0, 1.0)) is None


def test_cp10a_a_place_that_one_draw_could_not_state_is_left_out() -> None:
    random = np.random.default_rng(5)
    draws = [draw(random, tail=0.0) for _ in range(8)]
    table: dict[Place, list[Strengths | None]] = {place: [found[place] for found in draws] for place in PLACES}
    table[PLACES[0]][3] = None
    made = calibrate(table)
    assert made is not None
    assert made.excess(PLACES[0], Strengths(1.0, 1.0, 1.0)) is None
    assert made.num_draws == 8


def test_cp10a_the_order_of_draws_does_not_matter() -> None:
    random = np.random.default_rng(6)
    draws = [draw(random, tail=0.0) for _ in range(8)]
    table = {place: [found[place] for found in draws] for place in PLACES}
    turned = {place: list(reversed(found)) for place, found in table.items()}
    one, other = calibrate(table), calibrate(turned)
    assert one is not None
    assert other is not None
    assert (one.units, sorted(one.limits)) == (other.units, sorted(other.limits))


@pytest.mark.parametrize(("factor", "biased"), [(1 + 2.0**-23, False), (1 + 2.0**-19, True)])
def test_cp10a_a_common_factor_of_one_unit_in_the_last_place_is_no_bias(factor: float, biased: bool) -> None:
    values = np.random.default_rng(4).normal(size=64).astype(np.float32)
    moved = (values * np.float32(factor)).astype(np.float32)
    sides = [(found.tobytes().hex(), "float32") for found in (values, moved)]
    found = of_samples(sides[0], sides[1])
    assert found is not None
    assert (found.bias > 4.0) is biased


@pytest.mark.parametrize(("units", "biased"), [(1, True), (2, False)])
def test_cp10a_a_square_moves_by_two_units_where_its_factors_move_by_one(units: int, biased: bool) -> None:
    values = np.random.default_rng(4).normal(size=64).astype(np.float32)
    moved = (values * np.float32(1 + 2.0**-23)).astype(np.float32)
    squares = [((found * found).astype(np.float32).tobytes().hex(), "float32") for found in (values, moved)]
    found = of_samples(squares[0], squares[1], units=units)
    assert found is not None
    assert (found.bias > 4.0) is biased
