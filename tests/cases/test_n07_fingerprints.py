"""N-07: "same elements, other order" is a statement about elements, not words, and not one about masks."""

import numpy as np
import numpy.typing as npt
import pytest

from paritrace.evidence.fingerprints import fingerprint
from paritrace.evidence.summaries import summarise

Bits = npt.NDArray[np.uint16]
X: Bits = (np.random.default_rng(7).standard_normal((64, 64), dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
REORDERED = {
    "halves_to_interleaved": X.reshape(64, 2, 32).transpose(0, 2, 1).reshape(64, 64),
    "rolled_by_one": np.roll(X.reshape(-1), 1).reshape(64, 64),
    "transposed": X.T,
}


def word_sum(bits: Bits) -> int:
    words = np.ascontiguousarray(bits).reshape(-1).view(np.uint32)
    return fingerprint(words, "elements-u64").values[0]


@pytest.mark.parametrize("name", REORDERED)
def test_bfloat16_permutations_keep_their_elements(name: str) -> None:
    changed = REORDERED[name]
    assert fingerprint(changed, "elements-u64") == fingerprint(X, "elements-u64")
    assert fingerprint(changed, "xxh3-64") != fingerprint(X, "xxh3-64")
    assert word_sum(changed) != word_sum(X)


def test_two_masks_with_as_many_ones_show_too_few_values_for_a_statement() -> None:
    random = np.random.default_rng(8)
    masks = [random.permutation(np.arange(5000) < 1000) for _ in range(2)]
    one, other = (summarise(mask.tobytes(), dtype="bool", num_elements=5000, regions=4) for mask in masks)
    assert one.elements == other.elements
    assert one.bits != other.bits
    assert len(set(bytes.fromhex(one.samples))) == 2
