"""A-06: NaN in one run and 1.0 in the other: the counts say it, though the finite elements agree."""

import numpy as np

from paritrace.compare.fields import difference_of
from paritrace.compare.result import DifferenceClass
from tests.compare.slots_pairs import pair


def test_nan_counts_come_first() -> None:
    candidate = np.ones(10, dtype=np.float32)
    baseline = candidate.copy()
    baseline[[1, 4, 7]] = np.nan
    found = pair(baseline, candidate)
    ours, theirs = found.details
    assert ours is not None
    assert theirs is not None
    assert ours.moments is not None
    assert theirs.moments is not None
    assert (ours.moments.min, ours.moments.max) == (theirs.moments.min, theirs.moments.max)
    told = difference_of("out", found)
    assert told.difference_class is DifferenceClass.NON_FINITE_APPEARED
    assert told.baseline.startswith("3 NaN")
    assert told.candidate.startswith("0 NaN")
