"""N-08: an XOR over 2-byte shards of odd width folds only at the element's width; the element sum shows a double."""

from functools import reduce
from operator import xor

import numpy as np
import pytest

from paritrace.evidence.fingerprints import elements, fold_xor, xor_regions

WEIGHT = np.random.default_rng(8).integers(0, 1 << 16, (3, 257), dtype=np.uint16)
SHARDS = [np.ascontiguousarray(part) for part in np.split(WEIGHT, [128], axis=1)]
MASK = (1 << 64) - 1


def test_the_xor_of_words_does_not_fold_but_that_of_elements_does() -> None:
    whole = xor_regions(WEIGHT, 1)[0]
    parts = [xor_regions(shard, 1)[0] for shard in SHARDS]
    assert reduce(xor, parts) != whole
    assert reduce(xor, (fold_xor(part, 2) for part in parts)) == fold_xor(whole, 2)


def test_the_element_sum_folds() -> None:
    assert sum(elements(shard, 2) for shard in SHARDS) & MASK == elements(WEIGHT, 2)


@pytest.mark.parametrize("shard", SHARDS, ids=["first", "second"])
def test_a_shard_loaded_twice_hides_in_the_xor_and_shows_in_the_sum(shard: np.ndarray) -> None:
    twice = np.concatenate((shard, shard))
    assert fold_xor(xor_regions(twice, 1)[0], 2) == 0
    assert elements(twice, 2) == 2 * elements(shard, 2) & MASK
    assert elements(twice, 2) != elements(WEIGHT, 2)
