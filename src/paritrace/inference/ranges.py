"""Which range of a thread holds a launch: exactly one innermost, or a reason (IN-24)."""

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct


class Range(Struct, frozen=True):
    """A range of one thread; `number` is its owner's in a list of iterations."""

    start_ns: int
    end_ns: int
    number: int


class ThreadRanges:
    """The ranges of one thread of one trace. Where they nest, the innermost is found by climbing; else by looking."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._ranges = sorted(ranges, key=lambda one: (one.start_ns, -one.end_ns, one.number))
        self._starts = [one.start_ns for one in self._ranges]
        self._parents, self._nest = _nesting(self._ranges)

    def holding(self, start_ns: int, end_ns: int) -> tuple[int, ...]:
        """Return the number of the one innermost range that holds a launch wholly; several or none where not one does.

        A range holds what begins at its start, and not what begins at its end.
        """
        found = self._climbed(start_ns, end_ns) if self._nest else self._looked(start_ns, end_ns)
        innermost = [one for one in found if not any(_inside(other, one) for other in found)]
        return tuple(sorted(one.number for one in innermost))

    def _climbed(self, start_ns: int, end_ns: int) -> list[Range]:
        at = bisect_right(self._starts, start_ns) - 1
        while at >= 0 and not _holds(self._ranges[at], start_ns, end_ns):
            at = self._parents[at]
        found: list[Range] = []
        while at >= 0 and (not found or _alike(self._ranges[at], found[0])):
            found.append(self._ranges[at])
            at = self._parents[at]
        return found

    def _looked(self, start_ns: int, end_ns: int) -> list[Range]:
        last = bisect_right(self._starts, start_ns)
        return [one for one in self._ranges[:last] if _holds(one, start_ns, end_ns)]


def _holds(one: Range, start_ns: int, end_ns: int) -> bool:
    return one.start_ns <= start_ns < one.end_ns and end_ns <= one.end_ns


def _inside(one: Range, other: Range) -> bool:
    return other.start_ns <= one.start_ns and one.end_ns <= other.end_ns and not _alike(one, other)


def _alike(one: Range, other: Range) -> bool:
    return (one.start_ns, one.end_ns) == (other.start_ns, other.end_ns)


def _nesting(ranges: list[Range]) -> tuple[list[int], bool]:
    """Return the enclosing range of each, -1 where there is none, and whether no two cross."""
    parents: list[int] = []
    open_ones: list[int] = []
    for number, one in enumerate(ranges):
        while open_ones and ranges[open_ones[-1]].end_ns <= one.start_ns:
            open_ones.pop()
        if open_ones and ranges[open_ones[-1]].end_ns < one.end_ns:
            return [], False
        parents.append(open_ones[-1] if open_ones else -1)
        open_ones.append(number)
    return parents, True
