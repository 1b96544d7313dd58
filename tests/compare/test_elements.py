"""Element-wise figures against a plain computation of the whole, in pieces of any size; NaN never passes (CP-11)."""

import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.compare import elements
from paritrace.compare.element_figures import ElementFigures
from paritrace.compare.elements import element_figures, mask_misfit, not_comparable
from paritrace.evidence.tensor_files import Stored
from paritrace.runs.tensors import WholeTensor

SPECIAL = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 1e-45, 3.4e38]


def whole(array: npt.NDArray[Any], dtype: str = "") -> WholeTensor:
    data = np.ascontiguousarray(array)
    return WholeTensor(Stored(dtype or str(data.dtype), array.shape, 0, data.nbytes), data.reshape(-1).view(np.uint8))


def figures(a: npt.NDArray[Any], b: npt.NDArray[Any], **options: Any) -> ElementFigures:
    assert not not_comparable(whole(a), whole(b))
    return element_figures(whole(a), whole(b), **options)


@pytest.fixture(params=[1, 3, 1 << 18])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    size: int = request.param
    monkeypatch.setattr(elements, "CHUNK_ELEMENTS", size)
    return size


floats = st.one_of(st.sampled_from(SPECIAL), st.floats(width=32))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=12), st.integers(1, 5))
def test_figures_are_those_of_the_whole(pairs: list[tuple[float, float]], size: int) -> None:
    a, b = (np.array(side, np.float32) for side in zip(*pairs, strict=True))
    before, elements.CHUNK_ELEMENTS = elements.CHUNK_ELEMENTS, size
    try:
        found = figures(a, b)
    finally:
        elements.CHUNK_ELEMENTS = before

    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    mismatch = [not (x == y or (math.isnan(x) and math.isnan(y))) for x, y in zip(a, b, strict=True)]
    assert found.num_mismatches == sum(mismatch)
    assert found.num_other_bits == int((a.view(np.uint32) != b.view(np.uint32)).sum())
    assert found.num_non_finite == (int((~np.isfinite(a)).sum()), int((~np.isfinite(b)).sum()))
    assert found.num_nan_both == int((np.isnan(a) & np.isnan(b)).sum())
    assert found.num_non_finite_apart == int((np.array(mismatch) & ~finite).sum())
    assert found.first == ((mismatch.index(True),) if any(mismatch) else ())
    apart = np.abs(wide_b[finite] - wide_a[finite])
    assert found.max_absolute == (apart.max() if finite.any() else None)
    nonzero = wide_a[finite] != 0
    assert found.max_relative == ((apart[nonzero] / np.abs(wide_a[finite][nonzero])).max() if nonzero.any() else None)
    assert sum(number for _, number in found.ulps) <= (found.num_other_bits or 0)


def test_a_nan_on_one_side_comes_first(chunk: int) -> None:
    """A-06: three NaN of the baseline stand where the candidate has 1.0; the other elements are equal."""
    a = np.arange(10, dtype=np.float64)
    b = a.copy()
    a[[2, 5, 7]], b[[2, 5, 7]] = math.nan, 1.0

    found = figures(a, b)

    assert (found.num_non_finite, found.num_non_finite_apart, found.num_mismatches) == ((3, 0), 3, 3)
    assert (found.first, found.first_non_finite, found.first_values) == ((2,), (2,), ("nan", "1"))
    assert found.max_absolute == 0.0, "among what is finite on both sides"


def test_all_nan_against_all_zero_has_no_size(chunk: int) -> None:
    """A-05."""
    a, b = np.full((3, 5), math.nan, np.float16), np.zeros((3, 5), np.float16)
    found = figures(a, b)
    assert (found.num_mismatches, found.num_non_finite, found.first) == (15, (15, 0), (0, 0))
    assert (found.max_absolute, found.max_relative, found.max_ulp, found.cosine) == (None, None, None, None)


def test_nan_on_both_sides_agrees_with_nothing() -> None:
    a = np.array([math.nan, 1.0])
    found = figures(a, a)
    assert (found.num_nan_both, found.num_mismatches, found.num_non_finite_apart) == (1, 0, 0)


def test_the_first_mismatch_and_the_largest_are_named_in_dims(chunk: int) -> None:
    a = np.ones((2, 3, 4), np.float32)
    b = a.copy()
    b[1, 0, 2] += np.float32(2**-20)
    b[1, 2, 3] = 2.0
    found = figures(a, b)
    assert (found.first, found.max_absolute_at, found.max_absolute, found.max_relative) == (
        (1, 0, 2),
        (1, 2, 3),
        1.0,
        1.0,
    )
    assert found.ulps == ((8, 1), (-1, 1))
    assert found.max_ulp == 1 << 23
    assert found.cosine is not None
    assert found.cosine < 1


def test_distances_of_floats_across_zero_and_of_doubles() -> None:
    tiny = np.array([5e-324, 1.0, -sys.float_info.max])
    found = figures(-tiny, tiny)
    assert found.max_ulp == 2 * 0x7FEFFFFFFFFFFFFF
    assert found.ulps == ((2, 1), (-1, 2))
    assert found.max_absolute == sys.float_info.max, "beyond float64, and JSON has no infinity"


def test_whole_numbers_of_64_bits_differ_by_one() -> None:
    a = np.array([2**63 - 1, -(2**63)], np.int64)
    b = np.array([2**63 - 2, 2**63 - 1], np.int64)
    found = figures(a, b)
    assert (found.num_mismatches, found.max_absolute, found.max_ulp) == (2, float(2**64), None)
    alone = figures(a[:1], b[:1])
    assert (alone.num_mismatches, alone.max_absolute) == (1, 1.0)
    unsigned = figures(np.array([0], np.uint64), np.array([2**64 - 1], np.uint64))
    assert unsigned.max_absolute == float(2**64)


def test_complex_numbers_bools_and_unlike_dtypes() -> None:
    complex_ = figures(np.array([3 + 4j, 1j]), np.array([3 + 4j, 2j]))
    assert (complex_.first, complex_.max_absolute, complex_.max_relative) == ((1,), 1.0, 1.0)
    bools = figures(np.array([True, False]), np.array([False, False]))
    assert (bools.num_mismatches, bools.max_ulp) == (1, None)
    unlike = figures(np.array([1.0, 2.0], np.float32), np.array([1.0, 2.5], np.float16))
    assert (unlike.num_other_bits, unlike.num_mismatches, unlike.max_ulp, unlike.max_absolute) == (None, 1, None, 0.5)


@pytest.mark.parametrize(
    ("dtype", "words", "expected"),
    [
        ("bfloat16", np.array([0x3F80, 0x3F81], np.uint16), 2**-7),
        ("float8_e4m3fn", np.array([0x38, 0x39], np.uint8), 0.125),
    ],
)
def test_dtypes_that_numpy_lacks(dtype: str, words: npt.NDArray[Any], expected: float) -> None:
    found = element_figures(whole(words[[0, 0]], dtype), whole(words, dtype))
    assert (found.num_mismatches, found.max_absolute, found.max_relative) == (1, expected, expected)
    assert found.max_ulp == (1 if dtype == "bfloat16" else None)


def test_what_a_mask_leaves_out_is_counted_and_not_looked_at(chunk: int) -> None:
    a = np.zeros((2, 3, 2), np.float32)
    b = a.copy()
    b[0, 2], b[1, 1, 1] = math.nan, 5.0
    mask = whole(np.array([[1, 1, 0], [1, 1, 0]], np.int64))
    assert mask_misfit(a.shape, mask) == ""
    found = figures(a, b, mask=mask, mask_name="m")
    assert (found.num_elements, found.num_masked, found.num_mismatches, found.first) == (12, 4, 1, (1, 1, 1))
    assert (found.num_non_finite, found.mask, found.num_from_zero) == ((0, 0), "m", 1)
    nothing = figures(a, b, mask=whole(np.zeros((2,), np.bool_)))
    assert (nothing.num_masked, nothing.num_mismatches, nothing.max_absolute) == (12, 0, None)


def test_masks_that_do_not_fit_are_told() -> None:
    assert "does not fit" in mask_misfit((2, 3), whole(np.ones((3,), np.bool_)))
    assert "does not fit" in mask_misfit((2,), whole(np.ones((2, 3), np.bool_)))
    assert "bool or whole" in mask_misfit((2,), whole(np.ones((2,), np.float32)))
    assert "bool or whole" in mask_misfit((2,), whole(np.ones((2,), np.uint16), "bfloat16"))


def test_shape_and_kind_of_number_come_before_any_value() -> None:
    assert "shapes differ" in not_comparable(whole(np.ones(2)), whole(np.ones((2, 1))))
    assert "same kind" in not_comparable(whole(np.ones(2, np.int64)), whole(np.ones(2, np.int32)))
    assert "no numbers" in not_comparable(whole(np.ones(2, np.uint8), "bits8"), whole(np.ones(2, np.uint8), "bits8"))


def test_empty_and_zero_dims() -> None:
    empty = figures(np.ones((0, 3)), np.ones((0, 3)))
    assert (empty.num_elements, empty.num_mismatches, empty.max_absolute) == (0, 0, None)
    scalar = figures(np.array(1.0), np.array(2.0))
    assert (scalar.num_elements, scalar.num_mismatches, scalar.first, scalar.first_values) == (1, 1, (), ("1", "2"))
