"""A-03: the zeros that fill the last word make two lengths collide, so the length is part of a fingerprint."""

import numpy as np

from paritrace.evidence.fingerprints import fingerprint

THREE, FOUR = np.array([1, 2, 3], np.float16), np.array([1, 2, 3, 0], np.float16)


def test_the_padding_collides_and_the_length_tells() -> None:
    three, four = fingerprint(THREE), fingerprint(FOUR)
    assert three.values == four.values
    assert (three.logical_nbytes, four.logical_nbytes) == (6, 8)
    assert three != four
    assert (three.byte_ranges, four.byte_ranges) == (((0, 6),), ((0, 8),))


def test_xxh3_does_not_pad() -> None:
    assert fingerprint(THREE, "xxh3-64").values != fingerprint(FOUR, "xxh3-64").values
