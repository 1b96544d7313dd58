"""Which pairs the full suite has: every mechanism at its places, plain and masked, and the controls (CP-18)."""

from collections.abc import Iterator

from benchmarks.faults.masks import MASKS
from benchmarks.faults.mechanisms_modules import MODULE_MECHANISMS
from benchmarks.faults.mechanisms_training import TRAINING_MECHANISMS
from benchmarks.faults.placing import Mechanism, Mode, Placed, placed, placements

MECHANISMS: tuple[Mechanism, ...] = (*MODULE_MECHANISMS, *TRAINING_MECHANISMS)


def placed_pairs(count: int, *, seed: int) -> Iterator[Placed]:
    """Every mechanism at `count` places, plain and masked; the first place of all mechanisms before the second."""
    drawn = [
        (mechanism, mode, placements(mechanism, count, mode=mode, seed=seed))
        for mechanism in MECHANISMS
        for mode in Mode
    ]
    for number in range(count):
        for mechanism, mode, places in drawn:
            for place in places[number : number + 1]:
                yield placed(mechanism, place, number=number, mode=mode, mask=MASKS[place.mask])
