"""The claim ladder: worst-case completion, tipping points, false claims of robustness (AT-14, case N-14)."""

import numpy as np
import pytest

from paritrace.attempts.claims import Analysis, Claimed, claimed, excludes_zero
from paritrace.attempts.completion import Side, bounds, path_against, worst_case
from paritrace.attempts.manifest import PrimaryTest
from paritrace.attempts.result import Claim

NAMES = ("A", "B")
PAIRED_T = Analysis(PrimaryTest.PAIRED_T, 0.95)


def side(passes: list[int], judged: list[int], missing: list[int]) -> Side:
    return Side(*(np.array(one, dtype=float) for one in (passes, judged, missing)))


def claim(first: Side, second: Side, analysis: Analysis = PAIRED_T) -> Claimed:
    return claimed(first, second, analysis, names=NAMES)


def simulated(num_runs: int, *, seed: int) -> tuple[float, float, float]:
    """True nulls: 60 tasks, the same chance on both sides, half of the attempts that B lost are missing.

    Returns the shares that are called a difference at all, robust, and robust by point bounds.
    """
    rng = np.random.default_rng(seed)
    some = robust = by_bounds = 0
    for _ in range(num_runs):
        chance = rng.beta(2, 2, 60)
        first, second = (rng.random((2, 60)) < chance).astype(float)
        missing = ((second == 0) & (rng.random(60) < 0.5)).astype(float)
        ones = np.ones(60)
        sides = Side(first, ones, np.zeros(60)), Side(second, ones - missing, missing)
        found = claim(*sides)
        low, high = bounds(*sides, low=0.0, high=1.0)
        some += found.claim is not Claim.UNDETERMINED
        robust += found.claim is Claim.ROBUST
        by_bounds += found.claim is not Claim.UNDETERMINED and (low > 0 or high < 0)
    return some / num_runs, robust / num_runs, by_bounds / num_runs


def test_n_14_robust_holds_in_about_two_per_cent_of_true_nulls() -> None:
    some, robust, by_bounds = simulated(400, seed=14)
    assert some > 0.2  # informative missingness makes a difference out of nothing
    assert by_bounds > 0.18  # and bounds that keep their sign call it robust
    assert robust < 0.045  # 2 % expected: more than 18 of 400 has a chance below 0.001


@pytest.mark.slow
def test_n_14_robust_holds_in_two_to_three_per_cent_of_many_true_nulls() -> None:
    _, robust, by_bounds = simulated(4000, seed=15)
    assert 0.012 < robust < 0.03
    assert by_bounds > 0.2


def test_at_14_the_rungs_in_order() -> None:
    ones = [1] * 12
    same = side([1, 0] * 6, ones, [0] * 12)
    assert claim(same, side([0, 1] * 6, ones, [0] * 12)).claim is Claim.UNDETERMINED
    better = side([1] * 11 + [0], ones, [0] * 12)
    worse = side([0] * 10 + [0, 1], ones, [0] * 12)
    assert claim(better, worse).claim is Claim.ROBUST
    lost = side([0] * 12, [1] * 6 + [0] * 6, [0] * 6 + [1] * 6)
    some = side([1, 1, 1, 1, 1, 0] * 2, ones, [0] * 12)
    found = claim(some, lost)
    assert found.claim is Claim.CONDITIONAL
    assert [one.statement for one in found.tipping] == ["sign", "claim"]


def test_at_14_tipping_point_is_the_fewest_that_turn_it() -> None:
    first = side([1] * 10, [1] * 10, [0] * 10)
    second = side([0] * 4 + [0] * 6, [1] * 4 + [0] * 6, [0] * 4 + [1] * 6)
    (sign, *_) = claim(first, second).tipping
    assert sign.num is None  # A leads whatever the six were
    assert "stands whatever the 6 missing attempts were" in sign.sentence
    even = side([1, 0] * 5, [1] * 10, [0] * 10)
    behind = side([1, 0, 0, 0], [1] * 4, [0] * 4)
    behind = Side(
        *(
            np.concatenate([one, extra])
            for one, extra in zip(
                (behind.sums, behind.num_judged, behind.num_missing),
                (np.zeros(6), np.zeros(6), np.ones(6)),
                strict=True,
            )
        )
    )
    (tip,) = claim(even, behind).tipping
    assert tip.sentence == f"the sign flips if {tip.num} of the 6 missing attempts of B passed"
    path = path_against(even, behind, sign=1.0, low=0.0, high=1.0)
    assert tip.num is not None
    assert path.at(tip.num).mean() <= 0 < path.at(tip.num - 1).mean()


def test_at_14_the_end_of_the_path_is_the_worst_case_completion() -> None:
    first, second = side([1, 2, 0], [1, 3, 0], [1, 0, 2]), side([0, 1, 1], [1, 2, 1], [2, 1, 0])
    for sign in (1.0, -1.0):
        path = path_against(first, second, sign=sign, low=0.0, high=1.0)
        worst = worst_case(first, second, sign=sign, low=0.0, high=1.0)
        assert path.at(path.num) == pytest.approx(worst)
        assert path.num == 6


def test_at_14_bounds_are_the_worst_cases_of_both_signs() -> None:
    first, second = side([1, 2], [1, 3], [1, 0]), side([0, 1], [1, 2], [2, 1])
    assert bounds(first, second, low=0.0, high=1.0) == pytest.approx((-1 / 12, 2 / 3))
    for sign, edge in ((1.0, -1 / 12), (-1.0, 2 / 3)):
        assert worst_case(first, second, sign=sign, low=0.0, high=1.0).mean() == pytest.approx(edge)


@pytest.mark.parametrize("test", list(PrimaryTest))
def test_at_14_the_declared_test_decides(test: PrimaryTest) -> None:
    clear = [1.0] * 11 + [0.0]
    faint = [1.0, -1.0, 1.0, 0.0, 0.0, 0.0]
    assert excludes_zero(clear, Analysis(test, 0.95), sign=1.0)
    assert not excludes_zero(faint, Analysis(test, 0.95), sign=1.0)
    assert not excludes_zero(clear, Analysis(test, 0.95), sign=-1.0)


def test_at_14_mcnemar_claims_nothing_with_several_attempts_a_task() -> None:
    assert not excludes_zero([0.5] * 12 + [1.0] * 8, Analysis(PrimaryTest.MCNEMAR, 0.95), sign=1.0)


def test_at_14_after_an_unplanned_extension_only_an_anytime_valid_interval_claims() -> None:
    values = [1.0] * 11 + [0.0]
    assert excludes_zero(values, PAIRED_T, sign=1.0)
    assert not excludes_zero(values, Analysis(PrimaryTest.PAIRED_T, 0.95, anytime=True), sign=1.0)
    assert excludes_zero(values * 40, Analysis(PrimaryTest.PAIRED_T, 0.95, anytime=True), sign=1.0)


def test_at_14_nothing_that_varies_is_no_claim() -> None:
    found = claim(side([1] * 5, [1] * 5, [0] * 5), side([1] * 5, [1] * 5, [0] * 5))
    assert found.claim is Claim.UNDETERMINED
    assert found.reasons == ("the mean difference is zero",)
