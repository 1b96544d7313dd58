"""A-03: zero padding of the last word makes XORs equal; shape and number of bytes are compared before any value."""

import numpy as np

from paritrace.compare.fields import difference_of
from paritrace.compare.result import Agreement, DifferenceClass
from paritrace.compare.slots import folded_xor, judge
from tests.compare.slots_pairs import pair

THREE = np.array([1, 2, 3], dtype=np.float16)
FOUR = np.array([1, 2, 3, 0], dtype=np.float16)


def test_a_trailing_zero_is_another_shape() -> None:
    found = pair(THREE, FOUR)
    ours, theirs = found.details
    assert ours is not None
    assert theirs is not None
    assert folded_xor(ours.xor) == folded_xor(theirs.xor)
    assert judge(found).agreement is Agreement.DIFFERENT
    assert difference_of("out", found).difference_class is DifferenceClass.SHAPE
