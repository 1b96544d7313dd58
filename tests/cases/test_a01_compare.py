"""A-01: where XOR is all that two captures share, equal constants are never called equal."""

import numpy as np
import pytest

from paritrace.compare.result import Agreement
from paritrace.compare.slots import Incomparable, judge
from paritrace.testing.tables import Array
from tests.compare.slots_pairs import pair


def constant(value: float) -> Array:
    return np.full(64, value, dtype=np.float32)


def test_constants_that_collide_under_xor_differ_by_what_else_was_recorded() -> None:
    found = pair(constant(0.5), constant(0.3), same_scheme=False)
    assert found.details[0] is not None
    assert found.details[1] is not None
    assert found.details[0].xor == found.details[1].xor
    assert judge(found).agreement is Agreement.DIFFERENT


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_a_match_under_xor_is_consistent_and_never_equal(value: float) -> None:
    found = judge(pair(constant(value), constant(value), same_scheme=False))
    assert (found.agreement, found.reason) == (Agreement.NOT_COMPARABLE, Incomparable.CONSISTENT_ONLY)
