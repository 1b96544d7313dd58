"""A-02: changes that an XOR does not see are differences, by the order-sensitive fingerprint."""

import numpy as np
import pytest

from paritrace.compare.fields import difference_of
from paritrace.compare.result import Agreement, DifferenceClass
from paritrace.compare.slots import folded_xor, judge
from paritrace.testing.tables import Array
from tests.compare.runs import numbers
from tests.compare.slots_pairs import pair

A = numbers(2, 64)
SWAPPED = A[[5, 1, 2, 3, 4, 0, *range(6, 64)]]
TWO_SIGNS = np.where(np.isin(np.arange(64), (1, 2)), -A, A)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (SWAPPED, DifferenceClass.SAME_ELEMENTS_OTHER_ORDER),
        (TWO_SIGNS, DifferenceClass.SIGNS_ONLY),
        (A * np.float32(2), DifferenceClass.CONSTANT_SCALE),
    ],
)
def test_each_change_is_seen_and_named(changed: Array, expected: DifferenceClass) -> None:
    found = pair(A, changed)
    assert judge(found).agreement is Agreement.DIFFERENT
    assert difference_of("out", found).difference_class is expected


@pytest.mark.parametrize("changed", [SWAPPED, TWO_SIGNS])
def test_the_xor_of_the_whole_sees_neither(changed: Array) -> None:
    ours, theirs = pair(A, changed).details
    assert ours is not None
    assert theirs is not None
    assert folded_xor(ours.xor) == folded_xor(theirs.xor)
