"""Fieller's interval is the set of ratios that a t test does not reject (IN-17)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from paritrace.statistics.ratios import Mean, fieller_interval
from paritrace.statistics.records import Interval

VALUES = st.lists(st.tuples(st.floats(1, 9), st.floats(1, 9)), min_size=4, max_size=9, unique=True)


def of_pairs(pairs: list[tuple[float, float]], level: float = 0.95) -> Interval | None:
    below, above = np.array(pairs).T
    covariance = np.cov(above, below) / len(pairs)
    return fieller_interval(
        Mean(float(above.mean()), float(covariance[0, 0])),
        Mean(float(below.mean()), float(covariance[1, 1])),
        covariance=float(covariance[0, 1]),
        df=len(pairs) - 1,
        level=level,
    )


@settings(deadline=None)  # SciPy is imported by the first example
@given(VALUES)
def test_in17_the_ends_are_just_rejected_by_a_paired_t_test_of_what_they_say(pairs: list[tuple[float, float]]) -> None:
    below, above = np.array(pairs).T
    found = of_pairs(pairs)
    if found is None:  # the mean below is not told from 0 itself
        assert stats.ttest_1samp(below, 0).pvalue >= 0.05 - 1e-9
        return
    for end in (found.low, found.high):
        rest = above - end * below
        if np.std(rest) > 1e-9:
            assert stats.ttest_1samp(rest, 0).pvalue == pytest.approx(0.05, rel=1e-4)
    assert found.low <= above.mean() / below.mean() <= found.high


def test_in17_a_denominator_that_may_be_zero_bounds_no_ratio() -> None:
    assert fieller_interval(Mean(1.0, 0.01), Mean(0.1, 0.01), covariance=0.0, df=8, level=0.95) is None


def test_in17_without_an_error_below_it_is_a_t_interval_divided() -> None:
    found = fieller_interval(Mean(6.0, 0.04), Mean(2.0, 0.0), covariance=0.0, df=10, level=0.95)
    assert found is not None
    reach = float(stats.t.ppf(0.975, 10)) * 0.2 / 2
    assert (found.low, found.high) == pytest.approx((3 - reach, 3 + reach))


def test_in17_nineteen_of_twenty_intervals_hold_the_ratio() -> None:
    drawn = np.random.default_rng(20_261_130)
    held = 0
    for _ in range(2_000):
        below, above = drawn.normal(10, 2, 6), drawn.normal(13, 2, 6)
        found = fieller_interval(
            Mean(float(above.mean()), float(above.var(ddof=1)) / 6),
            Mean(float(below.mean()), float(below.var(ddof=1)) / 6),
            covariance=0.0,
            df=10,
            level=0.95,
        )
        held += found is not None and found.low <= 1.3 <= found.high
    assert 0.935 < held / 2_000 < 0.965
