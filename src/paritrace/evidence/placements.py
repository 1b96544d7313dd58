"""Which part of a whole tensor a rank holds, and which of the whole's samples lie in it (CA-8, CA-28)."""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from paritrace.evidence.fingerprints import sample_indices

Runs = tuple[tuple[int, int], ...]  # half-open ranges of indices of one dimension, in the order they lie in the part


class Cut(Struct, frozen=True):
    """One dimension of a mesh cuts dimension `dim` of a tensor into `parts`; the part held here is number `index`.

    `strides` above 1: the dimension is first cut into so many pieces, each of these into `parts`, and the part holds
    its share of every piece, one after the other (torch's strided shards).
    """

    dim: int
    parts: int
    index: int
    strides: int = 1


def owned(shape: tuple[int, ...], cuts: Sequence[Cut]) -> tuple[Runs, ...]:
    """The indices held of each dimension of a whole of this shape; the cuts apply from the first to the last.

    As `torch.chunk` cuts: parts of equal size rounded up, so that the last ones may be smaller or empty.
    """
    held: list[Runs] = [((0, size),) if size else () for size in shape]
    for cut in cuts:
        held[cut.dim] = _share(held[cut.dim], cut)
    return tuple(held)


def extent(held: tuple[Runs, ...]) -> tuple[int, ...]:
    """The shape of the part that holds these indices."""
    return tuple(sum(stop - start for start, stop in runs) for runs in held)


def offset(shape: tuple[int, ...], held: tuple[Runs, ...]) -> tuple[int, ...] | None:
    """Where the part begins in the whole; None when it is not one box. What is empty begins at the end."""
    if any(len(runs) > 1 for runs in held):
        return None
    return tuple(runs[0][0] if runs else size for runs, size in zip(held, shape, strict=True))


@lru_cache(maxsize=4096)
def box_samples(
    shape: tuple[int, ...], start: tuple[int, ...], size: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The samples of a whole of this shape that lie in the box of `size` at `start`, rising (CA-28).

    Returns their logical indices in the whole, and in the box. Over boxes that partition the whole, the first are
    exactly `sample_indices` of the whole.
    """
    total = 1
    for extent_ in shape:
        total *= extent_
    whole: list[int] = []
    local: list[int] = []
    for index in sample_indices(total):
        place = _place(index, shape=shape, start=start, size=size)
        if place is not None:
            whole.append(index)
            local.append(place)
    return tuple(whole), tuple(local)


def _place(index: int, *, shape: tuple[int, ...], start: tuple[int, ...], size: tuple[int, ...]) -> int | None:
    """The logical index in the box of what has this one in the whole; None for what lies outside."""
    place, scale = 0, 1
    for length, first, held in zip(reversed(shape), reversed(start), reversed(size), strict=True):
        index, coordinate = divmod(index, length)
        if not first <= coordinate < first + held:
            return None
        place += (coordinate - first) * scale
        scale *= held
    return place


def _share(runs: Runs, cut: Cut) -> Runs:
    length = sum(stop - start for start, stop in runs)
    found: list[tuple[int, int]] = []
    for piece in range(cut.strides):
        first, end = _chunk(length, cut.strides, piece)
        low, high = _chunk(end - first, cut.parts, cut.index)
        found += _between(runs, first + low, first + high)
    return _joined(found)


def _chunk(length: int, parts: int, index: int) -> tuple[int, int]:
    size = -(-length // parts)
    return min(size * index, length), min(size * (index + 1), length)


def _between(runs: Runs, low: int, high: int) -> list[tuple[int, int]]:
    """The stretch from the low-th to the high-th of the indices in the runs."""
    found: list[tuple[int, int]] = []
    passed = 0
    for start, stop in runs:
        first, end = max(low - passed, 0), min(high - passed, stop - start)
        if first < end:
            found.append((start + first, start + end))
        passed += stop - start
    return found


def _joined(runs: list[tuple[int, int]]) -> Runs:
    found: list[tuple[int, int]] = []
    for start, stop in runs:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return tuple(found)
