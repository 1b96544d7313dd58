"""Which part of a whole tensor a rank holds, and which of the whole's samples lie in it (CA-8, CA-28)."""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from msgspec import Struct

from paritrace.evidence.boxes import Box, in_box, owned
from paritrace.evidence.fingerprints import sample_indices

Ranges = tuple[tuple[int, int], ...]  # half-open ranges of indices of one dimension, in the order they lie in the part


class Cut(Struct, frozen=True):
    """One dimension of a mesh cuts dimension `dim` of a tensor into `parts`; the part held here is number `index`.

    `strides` above 1: the dimension is first cut into so many pieces, each of these into `parts`, and the part holds
    its share of every piece, one after the other (torch's strided shards).
    """

    dim: int
    parts: int
    index: int
    strides: int = 1


def held_by(shape: tuple[int, ...], cuts: Sequence[Cut]) -> tuple[Ranges, ...]:
    """The indices held of each dimension of a whole of this shape; the cuts apply from the first to the last.

    As `torch.chunk` cuts: parts of equal size rounded up, so that the last ones may be smaller or empty.
    """
    held: list[Ranges] = [((0, size),) if size else () for size in shape]
    for cut in cuts:
        held[cut.dim] = _share(held[cut.dim], cut)
    return tuple(held)


def extent(held: tuple[Ranges, ...]) -> tuple[int, ...]:
    """The shape of the part that holds these indices."""
    return tuple(sum(stop - start for start, stop in runs) for runs in held)


def offset(shape: tuple[int, ...], held: tuple[Ranges, ...]) -> tuple[int, ...] | None:
    """Where the part begins in the whole; None when it is not one box. What is empty begins at the end."""
    if any(len(runs) > 1 for runs in held):
        return None
    return tuple(runs[0][0] if runs else size for runs, size in zip(held, shape, strict=True))


@lru_cache(maxsize=4096)
def box_samples(box: Box, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The samples of a whole of this shape that lie in a box, rising (CA-28).

    Returns their logical indices in the whole, and in the box. Over boxes that partition the whole, the first are
    exactly `sample_indices` of the whole.
    """
    found = owned(sample_indices(prod(shape)), box=box, shape=shape)
    return found, in_box(found, box=box, shape=shape)


def _share(runs: Ranges, cut: Cut) -> Ranges:
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


def _between(runs: Ranges, low: int, high: int) -> list[tuple[int, int]]:
    """The stretch from the low-th to the high-th of the indices in the runs."""
    found: list[tuple[int, int]] = []
    passed = 0
    for start, stop in runs:
        first, end = max(low - passed, 0), min(high - passed, stop - start)
        if first < end:
            found.append((start + first, start + end))
        passed += stop - start
    return found


def _joined(runs: list[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for start, stop in runs:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return tuple(found)
