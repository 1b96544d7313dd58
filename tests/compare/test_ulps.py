"""Errors in units in the last place against float64 (CP-26)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.compare.ulps import BOUNDS, FORMATS, apart, spacing, ulp_errors

FINITE = st.floats(min_value=1e-30, max_value=1e30)


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_cp26_a_correctly_rounded_result_is_at_most_half_a_unit_away(numbers: list[float]) -> None:
    reference = np.array(numbers)
    errors = ulp_errors(reference.astype(np.float32).astype(np.float64), reference, dtype="float32")
    assert errors.largest is not None
    assert errors.largest <= 0.5
    assert errors.histogram[0] == len(numbers)
    assert errors.relative is not None
    assert errors.relative <= FORMATS["float32"].epsilon / 2


@given(FINITE, st.integers(min_value=1, max_value=300))
def test_cp26_a_number_so_many_neighbours_away_has_so_many_units(number: float, steps: int) -> None:
    at = np.float32(number)
    words = np.array([at]).view(np.int32)
    moved = (words + steps).view(np.float32).astype(np.float64)
    errors = ulp_errors(moved, np.array([at], dtype=np.float64), dtype="float32")
    assert errors.largest is not None
    assert steps <= errors.largest <= 2 * steps  # beyond a power of two the spacing doubles


@pytest.mark.parametrize(
    ("dtype", "numpy"), [("float32", np.float32), ("float16", np.float16), ("float64", np.float64)]
)
def test_cp26_spacing_is_numpys(dtype: str, numpy: type) -> None:
    values = np.array([1.0, 1.5, 2.0, 1000.25, 6e-5, 0.125, -3.0])
    found = spacing(values, FORMATS[dtype])
    assert np.array_equal(found, np.abs(np.spacing(values.astype(numpy))).astype(np.float64))


def test_cp26_at_zero_and_below_the_normal_numbers_the_unit_is_that_of_the_smallest_normal_number() -> None:
    found = spacing(np.array([0.0, 1e-45]), FORMATS["float32"])
    assert found.tolist() == [2.0**-149] * 2


def test_cp26_what_is_not_finite_on_one_side_alone_is_counted_and_takes_no_part_in_figures() -> None:
    values = np.array([1.0, math.nan, math.inf, math.nan, math.inf])
    reference = np.array([1.0, math.nan, math.inf, 2.0, -math.inf])
    errors = ulp_errors(values, reference, dtype="bfloat16")
    assert errors.non_finite_apart == 2
    assert errors.largest == 0
    assert sum(errors.histogram) == 1
    assert apart(values, reference) == math.inf


def test_cp26_bounds_of_the_histogram_belong_to_the_smaller_side() -> None:
    unit = FORMATS["float32"].epsilon
    values = np.array([1 + unit * bound for bound in BOUNDS])
    assert ulp_errors(values, np.ones(len(BOUNDS)), dtype="float32").histogram == (1,) * len(BOUNDS) + (0,)


def test_cp26_nothing_to_measure_is_no_zero() -> None:
    empty = np.zeros(0)
    errors = ulp_errors(empty, empty, dtype="float32")
    assert (errors.largest, errors.median, errors.relative) == (None, None, None)
    assert apart(np.zeros(3), np.zeros(3)) is None


@given(st.lists(FINITE, min_size=1, max_size=8), st.floats(min_value=1e-290, max_value=1e270))
def test_cp26_the_relative_distance_does_not_overflow(numbers: list[float], scale: float) -> None:
    one = np.array(numbers) / max(numbers) * scale
    found = apart(one, one * 1.5)
    assert found == pytest.approx(1 / 3)
