"""A-01: an XOR of equal words is 0, so constants cannot be told apart by it; the summary says so."""

import numpy as np

from paritrace.evidence.summaries import SlotSummary, summarise


def summary_of(constant: float) -> SlotSummary:
    values = np.full(64, constant, dtype=np.float32)
    return summarise(values.tobytes(), dtype="float32", num_elements=64, regions=4)


def test_constants_collide_under_xor_and_are_marked() -> None:
    half, third = summary_of(0.5), summary_of(0.3)
    assert half.xor == third.xor == "00000000" * 4
    assert half.degenerate
    assert third.degenerate


def test_everything_else_tells_them_apart() -> None:
    half, third = summary_of(0.5), summary_of(0.3)
    assert half.bits != third.bits
    assert half.regions != third.regions
    assert half.elements != third.elements
    assert half.samples != third.samples
    assert half.moments is not None
    assert third.moments is not None
    assert half.moments.min != third.moments.min
