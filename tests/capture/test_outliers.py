"""What counts as an outlier: a rule of the figures before it, and none below its fewest figures (CA-36)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.capture.outliers import FACTOR, FEWEST, LEAST_SHARE, NORMAL, WINDOW, Outliers

figures = st.floats(min_value=-1e6, max_value=1e6)


@given(st.lists(figures, max_size=FEWEST), figures)
def test_nothing_is_an_outlier_before_there_are_enough_figures(before: list[float], last: float) -> None:
    rule = Outliers()
    assert [rule.judge(value) for value in before[: FEWEST - 1]] == [None] * len(before[: FEWEST - 1])
    if len(before) < FEWEST:
        assert rule.judge(last) is None


@given(st.lists(figures, min_size=FEWEST, max_size=60), st.floats(min_value=0.1, max_value=100))
def test_only_what_lies_above_the_threshold_is_an_outlier_and_the_threshold_is_told(
    before: list[float], factor: float
) -> None:
    rule, same = Outliers(), Outliers()
    assert [rule.judge(value) for value in before] == [same.judge(value) for value in before], "alike every time"
    told = rule.judge(1e30)
    assert told is not None
    assert told >= sorted(before[-WINDOW:])[len(before[-WINDOW:]) // 2] - 1e-9
    assert same.judge(told - abs(told) * factor - factor) is None


def test_the_threshold_is_the_median_and_ten_deviations() -> None:
    rule = Outliers()
    for value in range(1, FEWEST + 1):
        rule.judge(float(value))
    median, deviation = 10.5, 5.0
    assert rule.judge(median + FACTOR * NORMAL * deviation + 1) == pytest.approx(median + FACTOR * NORMAL * deviation)


def test_figures_that_hardly_vary_have_no_outlier_in_their_last_digits() -> None:
    rule = Outliers()
    for _ in range(WINDOW):
        assert rule.judge(2.0) is None
    assert rule.judge(2.0 * (1 + FACTOR * LEAST_SHARE)) is None
    assert rule.judge(2.0 * (1 + FACTOR * LEAST_SHARE) * 1.001) is not None


def test_a_loss_that_falls_and_noise_around_it_are_no_outliers() -> None:
    draw = random.Random(0)
    rule = Outliers()
    assert not [step for step in range(5000) if rule.judge(8 * 0.999**step + 0.5 + abs(draw.gauss(0, 0.2))) is not None]


def test_the_window_forgets() -> None:
    rule = Outliers()
    for _ in range(WINDOW):
        rule.judge(1.0)
    assert rule.judge(100.0) is not None
    for _ in range(WINDOW):
        rule.judge(100.0)
    assert rule.judge(100.0) is None
