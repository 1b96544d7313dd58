"""How long something was busy: the sum of spans and their union, exact in integer nanoseconds (IN-9)."""

from array import array
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Times = NDArray[np.int64]


class Spans:
    """Half-open spans `[start, end)` in nanoseconds, with the number of the activity's owner, -1 where it has none."""

    def __init__(self) -> None:
        self._starts, self._ends, self._owners = array("q"), array("q"), array("q")

    def add(self, start_ns: int, end_ns: int, owner: int) -> None:
        """Add one span."""
        self._starts.append(start_ns)
        self._ends.append(end_ns)
        self._owners.append(owner)

    def columns(self) -> tuple[Times, Times, Times]:
        """Return starts, ends and owners."""
        return (
            np.array(self._starts, dtype=np.int64),
            np.array(self._ends, dtype=np.int64),
            np.array(self._owners, dtype=np.int64),
        )


class Busy(Struct, frozen=True):
    """`busy_ns` is the union of spans, `summed_ns` their sum."""

    busy_ns: int
    summed_ns: int


def busy(starts: Times, ends: Times) -> Busy:
    """Return sum and union of spans, in any order."""
    exact = sum(map(int, ends)) - sum(map(int, starts))  # a sum of many long spans may leave 64 bits
    return Busy(busy_ns=union_ns(starts, ends), summed_ns=exact)


def union_ns(starts: Times, ends: Times) -> int:
    """Return how many nanoseconds at least one span covers."""
    if not len(starts):
        return 0
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    covered = np.maximum.accumulate(ends)
    begins = starts.copy()
    begins[1:] = np.maximum(starts[1:], covered[:-1])
    parts = np.maximum(ends - begins, 0)
    return int(parts.sum())


def busy_of_owners(starts: Times, ends: Times, owners: Times) -> dict[int, tuple[Busy, int]]:
    """Return sum, union and number of spans of each owner."""
    order = np.lexsort((starts, owners))
    starts, ends, owners = starts[order], ends[order], owners[order]
    edges = np.concatenate(([0], np.flatnonzero(np.diff(owners)) + 1, [len(owners)])) if len(owners) else np.array([0])
    found: dict[int, tuple[Busy, int]] = {}
    for begin, end in pairwise(edges):
        found[int(owners[begin])] = (busy(starts[begin:end], ends[begin:end]), int(end - begin))
    return found
