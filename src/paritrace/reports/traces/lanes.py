"""Lanes of one thread: slices of one lane nest, what overlaps in part goes to the next one (SU-8): pure.

On one track Perfetto ends a slice where one that overlaps it in part ends, without a word: both durations are wrong.
"""

from msgspec import Struct

MOST = 32  # of one thread; beyond it nobody sees anything, and a call is shown as an instant that says so


class Entered(Struct, frozen=True, gc=False):
    """Where a slice begins, and how many slices of this lane end before it, the innermost first."""

    lane: int
    ended: tuple[int, ...]


class Lanes:
    """Takes slices in the order in which they begin."""

    def __init__(self) -> None:
        self._open: list[list[int]] = []  # by lane: when the slices end that are open, the outermost first
        self._latest: list[int] = []  # by lane: the time of the last beginning

    def enter(self, start: int, end: int, /) -> Entered | None:
        """Returns the lane of a slice; None when it fits into none of MOST lanes."""
        for lane, open_ends in enumerate(self._open):
            if start >= self._latest[lane] and _fits(open_ends, start, end):
                return self._entered(lane, start, end)
        if len(self._open) == MOST:
            return None
        self._open.append([])
        self._latest.append(start)
        return self._entered(len(self._open) - 1, start, end)

    def leave(self) -> list[tuple[int, tuple[int, ...]]]:
        """Returns by lane the ends of all slices that are still open, the innermost first."""
        return [(lane, tuple(reversed(ends))) for lane, ends in enumerate(self._open)]

    def _entered(self, lane: int, start: int, end: int) -> Entered:
        open_ends = self._open[lane]
        ended: list[int] = []
        while open_ends and open_ends[-1] <= start:
            ended.append(open_ends.pop())
        open_ends.append(end)
        self._latest[lane] = start
        return Entered(lane, tuple(ended))


def _fits(open_ends: list[int], start: int, end: int) -> bool:
    """Whether the innermost slice that is still open at `start` encloses the new one."""
    for one in reversed(open_ends):
        if one > start:
            return end <= one
    return True
