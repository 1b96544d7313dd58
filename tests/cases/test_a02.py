"""A-02: an XOR is blind to order and to paired sign flips inside a region; the strong fingerprints are not."""

import numpy as np
import numpy.typing as npt
import pytest

from paritrace.evidence.fingerprints import fingerprint

Values = npt.NDArray[np.float32]
A: Values = np.random.default_rng(2).standard_normal(64, dtype=np.float32)
SWAPPED = A[[5, 1, 2, 3, 4, 0, *range(6, 64)]]
TWO_SIGNS = np.where(np.isin(np.arange(64), (1, 2)), -A, A)


@pytest.mark.parametrize("changed", [SWAPPED, TWO_SIGNS, A[::-1]], ids=["swapped", "two_signs", "reversed"])
def test_the_xor_matches_though_the_tensor_changed(changed: Values) -> None:
    assert fingerprint(changed, "flat-u32-le-v1") == fingerprint(A, "flat-u32-le-v1")


@pytest.mark.parametrize("changed", [SWAPPED, TWO_SIGNS], ids=["swapped", "two_signs"])
def test_also_with_four_regions(changed: Values) -> None:
    assert fingerprint(changed, "flat-u32-le-v1", regions=4) == fingerprint(A, "flat-u32-le-v1", regions=4)


@pytest.mark.parametrize("scheme", ["xxh3-64", "mix-u32-le-v1"])
@pytest.mark.parametrize(
    "changed", [SWAPPED, TWO_SIGNS, A[::-1], 2 * A], ids=["swapped", "two_signs", "reversed", "doubled"]
)
def test_an_order_sensitive_scheme_differs(changed: Values, scheme: str) -> None:
    assert fingerprint(changed, scheme).values != fingerprint(A, scheme).values


def test_the_element_sum_says_which_are_permutations() -> None:
    whole = fingerprint(A, "elements-u64")
    assert fingerprint(SWAPPED, "elements-u64") == fingerprint(A[::-1], "elements-u64") == whole
    assert fingerprint(TWO_SIGNS, "elements-u64") != whole
    assert fingerprint(2 * A, "elements-u64") != whole


def test_hashes_of_small_integers_do_not_merge() -> None:
    """Two weights with elements {2, 2} and {0, 128} once had the same hash elsewhere."""
    for scheme in ("xxh3-64", "mix-u32-le-v1", "elements-u64"):
        one, other = (fingerprint(np.array(pair, np.int32), scheme) for pair in ((2, 2), (0, 128)))
        assert one.values != other.values
