"""Classes of difference and their sizes (CP-7, CA-28)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.compare.fields import difference_of
from paritrace.compare.result import Agreement, DifferenceClass, SlotDifference
from paritrace.compare.slots import Incomparable, SlotPair, judge
from paritrace.evidence.calls import Slot
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.testing.tables import Array
from tests.compare.runs import numbers
from tests.compare.slots_pairs import detail_of, pair

ZERO_AND_MORE = np.concatenate([np.zeros(4, np.float32), numbers(3, 92)])


def class_of(a: Array, b: Array) -> DifferenceClass:
    found = pair(a, b)
    assert judge(found).agreement is Agreement.DIFFERENT
    return difference_of("out", found).difference_class


def described(a: Array, b: Array) -> SlotDifference:
    return difference_of("out", pair(a, b))


def test_equal_bits_agree() -> None:
    assert judge(pair(numbers(1), numbers(1))).agreement is Agreement.EQUAL


def test_a_factor_is_named_and_never_called_harmless() -> None:
    found = described(numbers(1), numbers(1) * np.float32(8))
    assert (found.difference_class, found.note) == (DifferenceClass.CONSTANT_SCALE, "x8")


def test_a_factor_of_one_rounding_is_no_factor() -> None:
    assert class_of(numbers(1), np.nextafter(numbers(1), np.float32(9))) is DifferenceClass.VALUES


def test_only_signs() -> None:
    flipped = numbers(1).copy()
    flipped[::3] *= -1
    assert class_of(numbers(1), flipped) is DifferenceClass.SIGNS_ONLY


def test_negative_zeros_are_equal_values_in_other_bits() -> None:
    other = ZERO_AND_MORE.copy()
    other[:4] = -0.0
    assert class_of(ZERO_AND_MORE, other) is DifferenceClass.SAME_VALUES_OTHER_BITS


def test_a_narrower_dtype_shows_in_the_low_bits() -> None:
    narrow = (numbers(1).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    found = described(numbers(1), narrow)
    assert found.difference_class is DifferenceClass.NARROWER_DTYPE
    assert "candidate" in found.note
    assert found.relative_error is not None
    assert found.relative_error < 2**-7


def test_one_element_that_no_sample_covers_is_sparse_and_has_a_region() -> None:
    a = numbers(1, 4096)
    b = a.copy()
    b[4095 if 4095 not in _sampled(4096) else 4094] += 1
    found = described(a, b)
    assert found.difference_class is DifferenceClass.SPARSE_OR_BELOW_SAMPLING
    assert found.byte_ranges == ((3 * 4096, 4 * 4096),)


def _sampled(count: int) -> tuple[int, ...]:
    from paritrace.evidence.fingerprints import sample_indices

    return sample_indices(count)


def test_the_same_elements_in_another_order() -> None:
    assert class_of(numbers(1), numbers(1)[::-1].copy()) is DifferenceClass.SAME_ELEMENTS_OTHER_ORDER


def test_masks_share_their_elements_by_chance() -> None:
    mask = np.array([True, False] * 64)
    assert class_of(mask, ~mask) is not DifferenceClass.SAME_ELEMENTS_OTHER_ORDER


def test_integers_are_choices() -> None:
    a = np.arange(64, dtype=np.int64)
    b = a.copy()
    b[0] = 7
    found = described(a, b)
    assert found.difference_class is DifferenceClass.DISCRETE_CHOICE
    assert found.num_samples_differing == 1


def test_shape_comes_before_everything() -> None:
    assert class_of(numbers(1, 4, 8), numbers(1, 8, 4)) is DifferenceClass.SHAPE


def test_another_dtype_keeps_its_size() -> None:
    found = described(numbers(1), numbers(1).astype(np.float64) * 1.5)
    assert found.difference_class is DifferenceClass.DTYPE
    assert found.relative_error == pytest.approx(0.5)


@pytest.mark.parametrize("error", [1e-6, 1e-3, 1e-1])
def test_samples_estimate_the_relative_error(error: float) -> None:
    a, noise = numbers(1, 10_000), numbers(2, 10_000)
    b = (a + noise * np.float32(error)).astype(np.float32)
    found = described(a, b)
    true = float(np.linalg.norm(b - a) / np.linalg.norm(a))
    assert found.relative_error is not None
    assert 0.5 * true < found.relative_error < 1.5 * true


def test_a_one_sided_shift_is_a_bias() -> None:
    found = described(numbers(1, 4096), numbers(1, 4096) + np.abs(numbers(1, 4096)) * np.float32(1e-3))
    assert found.bias == pytest.approx(1e-3, rel=0.01)


def test_ulp_counts_representable_numbers() -> None:
    a = numbers(1)
    assert described(a, np.nextafter(a, np.float32(np.inf))).max_ulp == 1


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1))
def test_no_pair_of_half_precision_numbers_breaks_the_description(left: int, right: int) -> None:
    a, b = (np.full(3, code, dtype=np.uint16).view(np.float16) for code in (left, right))
    found = pair(a, b)
    if judge(found).agreement is Agreement.DIFFERENT:
        assert difference_of("out", found).baseline


def test_other_strides_of_the_same_values_agree_by_the_logical_summary() -> None:
    a = numbers(1, 4, 8)
    b = np.asfortranarray(a)
    assert judge(pair(a, b)).agreement is Agreement.EQUAL
    assert judge(pair(a, b, details=False)).reason is Incomparable.MEMORY_ORDER


def test_a_gap_is_not_comparable() -> None:
    found = pair(numbers(1), numbers(1))
    missing = Slot(0, 0, Gap(CaptureGap.UNSUPPORTED_DTYPE))
    assert judge(SlotPair(missing, *found[1:])).reason is Incomparable.NOT_CAPTURED
    running = Slot(0, 0, Gap(CaptureGap.IN_FLIGHT))
    assert judge(SlotPair(running, *found[1:])).reason is Incomparable.IN_FLIGHT


def test_without_details_only_bits_are_known() -> None:
    found = difference_of("out", pair(numbers(1), numbers(2), details=False))
    assert found.difference_class is DifferenceClass.BITS_ONLY
    assert found.relative_error is None


def test_captures_with_other_numbers_of_regions_are_folded() -> None:
    a, b = numbers(1), numbers(2)
    found = pair(a, b)
    eight = detail_of(b, "float32", regions=8)
    told = difference_of("out", SlotPair(found.baseline, found.candidate, found.kinds, (found.details[0], eight)))
    assert told.byte_ranges == ()
    assert "folded: 4 regions against 8" in told.note
