"""Holm's procedure (AT-13, IN-17)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.statistics.several import holm


def test_at13_holm_is_that_of_statsmodels() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))  # multipletests(method="holm")


def test_in17_of_none_is_none() -> None:
    assert holm([]) == ()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_in17_no_p_value_gets_smaller_none_beyond_bonferroni_and_their_order_stays(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    pairs = sorted(zip(p_values, adjusted, strict=True))
    assert all(one <= other <= min(1.0, one * len(p_values)) or one == 0 == other for one, other in pairs)
    assert [other for _, other in pairs] == sorted(other for _, other in pairs)
