"""A histogram of distances in units in the last place, in buckets of powers of two (CP-11)."""

from typing import Any

import numpy as np
import numpy.typing as npt

NUM_BUCKETS = 18  # 1, 2, 4, … 65536, and all beyond: more than half the digits of a float32 are gone there
_BOUNDS = np.array([1 << power for power in range(NUM_BUCKETS - 1)], np.uint64)
NO_BOUND = -1


class UlpHistogram:
    """Counts distances of codes that order floats by their value; equal codes are not counted."""

    def __init__(self) -> None:
        self._counts = np.zeros(NUM_BUCKETS, np.int64)
        self.largest = 0

    def add(self, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> None:
        """Count the distances of two lists of codes."""
        distances = _distances(left, right)
        distances = distances[distances > 0]
        if distances.size:
            self.largest = max(self.largest, int(distances.max()))
            places = np.searchsorted(_BOUNDS, distances, side="left")
            self._counts += np.bincount(places, minlength=NUM_BUCKETS)

    @property
    def buckets(self) -> tuple[tuple[int, int], ...]:
        """(largest distance of the bucket, number), empty ones left out; the last has no bound."""
        bounds = [int(bound) for bound in _BOUNDS] + [NO_BOUND]
        return tuple((bound, int(number)) for bound, number in zip(bounds, self._counts, strict=True) if number)


def _distances(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Distances of signed codes, which may be more than 63 bits long."""
    above: npt.NDArray[Any] = left > right
    ours, theirs = left.view(np.uint64), right.view(np.uint64)
    found: npt.NDArray[np.uint64] = np.where(above, ours - theirs, theirs - ours)
    return found
