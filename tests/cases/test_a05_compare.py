"""A-05: all NaN against all zero: counts come before any tolerance, and no side is called right."""

import numpy as np

from paritrace.compare.fields import difference_of
from paritrace.compare.result import Agreement, DifferenceClass
from paritrace.compare.slots import judge
from tests.compare.slots_pairs import pair

NANS = np.full((3, 5), np.nan, dtype=np.float16)
ZEROS = np.zeros((3, 5), dtype=np.float16)


def test_a_nan_never_passes() -> None:
    found = pair(NANS, ZEROS)
    assert judge(found).agreement is Agreement.DIFFERENT
    told = difference_of("out", found)
    assert told.difference_class is DifferenceClass.NON_FINITE_APPEARED
    assert (told.baseline, told.candidate) == ("15 NaN, 0 +Inf, 0 -Inf", "0 NaN, 0 +Inf, 0 -Inf")


def test_it_is_said_alike_in_both_directions() -> None:
    there = difference_of("out", pair(NANS, ZEROS))
    back = difference_of("out", pair(ZEROS, NANS))
    assert (there.baseline, there.candidate) == (back.candidate, back.baseline)
    assert there.difference_class is back.difference_class
