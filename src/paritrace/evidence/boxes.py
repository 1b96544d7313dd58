"""Boxes: where the local part of a distributed tensor lies in the whole, and the runs of elements it consists of."""

from enum import StrEnum
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Indices = npt.NDArray[np.int64]


class Box(Struct, frozen=True, order=True):
    """A part of a whole tensor: it begins at `offset` and has `shape`, both in elements per dimension."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def num_elements(self) -> int:
        return prod(self.shape)


class Tiling(StrEnum):
    """Whether boxes are a partition of a whole; only the first is one."""

    EXACT = "exact"
    OUTSIDE = "outside"  # some box reaches beyond the whole, or has another number of dimensions
    OVERLAPPING = "overlapping"  # some element lies in two boxes: replicas, or a wrong placement
    INCOMPLETE = "incomplete"  # some element lies in none


class Runs(Struct, frozen=True):
    """A box as runs of `length` neighbouring elements of the whole; `starts` are logical indices, rising."""

    length: int
    starts: Indices


def whole(shape: tuple[int, ...]) -> Box:
    """The box that is all of a tensor."""
    return Box(tuple([0] * len(shape)), shape)


@lru_cache(maxsize=4096)
def tiling(shape: tuple[int, ...], boxes: tuple[Box, ...]) -> Tiling:
    """Say whether every element of the whole lies in exactly one box; empty boxes count for nothing."""
    held = sorted(box for box in boxes if box.num_elements)
    if any(not _inside(box, shape) for box in held):
        return Tiling.OUTSIDE
    if any(_overlap(one, other) for place, one in enumerate(held) for other in held[place + 1 :]):
        return Tiling.OVERLAPPING
    return Tiling.EXACT if sum(box.num_elements for box in held) == prod(shape) else Tiling.INCOMPLETE


def runs_of(box: Box, shape: tuple[int, ...]) -> Runs:
    """The runs of a box in a whole of `shape`, in the order in which the box holds them (row-major)."""
    strides = _strides(shape)
    inner, length = len(shape), 1  # dims from `inner` on lie in one run: all but the first of them are whole
    while inner and (inner == len(shape) or box.shape[inner] == shape[inner]):
        inner -= 1
        length *= box.shape[inner]
    first = sum(start * stride for start, stride in zip(box.offset[inner:], strides[inner:], strict=True))
    starts: Indices = np.array([first], dtype=np.int64)
    for offset, size, stride in zip(box.offset[:inner], box.shape[:inner], strides[:inner], strict=True):
        steps: Indices = np.arange(offset, offset + size, dtype=np.int64) * stride
        starts = (starts[:, None] + steps).reshape(-1)
    return Runs(length, starts[:0] if not length else starts)


def is_word_aligned(box: Box, shape: tuple[int, ...], *, itemsize: int, word_bytes: int = 4) -> bool:
    """Whether every run of the box is whole words, in the whole and in the part: then the XOR of words folds (CA-8)."""
    runs = runs_of(box, shape)
    if not box.num_elements:
        return True
    aligned = runs.length * itemsize % word_bytes == 0
    return aligned and not bool((runs.starts * itemsize % word_bytes).any())


def owned(indices: tuple[int, ...], *, box: Box, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Those logical indices of the whole that lie in the box, in the order given."""
    inside: list[int] = []
    for index in indices:
        place = coordinates(index, shape)
        if all(low <= at < low + size for at, low, size in zip(place, box.offset, box.shape, strict=True)):
            inside.append(index)
    return tuple(inside)


def coordinates(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The place of a logical index, per dimension."""
    place: list[int] = []
    for stride, size in zip(_strides(shape), shape, strict=True):
        place.append(index // stride % size if size else 0)
    return tuple(place)


def in_whole(indices: tuple[int, ...], *, box: Box, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The logical indices in the whole of elements that are given by their index in the box."""
    return _moved(indices, by=box.offset, of=box.shape, into=shape)


def in_box(indices: tuple[int, ...], *, box: Box, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The logical indices in the box of elements that lie in it and are given by their index in the whole."""
    return _moved(indices, by=tuple(-low for low in box.offset), of=shape, into=box.shape)


def _moved(
    indices: tuple[int, ...], *, by: tuple[int, ...], of: tuple[int, ...], into: tuple[int, ...]
) -> tuple[int, ...]:
    """Logical indices in one shape as those in another, their places shifted."""
    strides = _strides(into)
    return tuple(
        sum((at + shift) * stride for at, shift, stride in zip(coordinates(index, of), by, strides, strict=True))
        for index in indices
    )


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))


def _inside(box: Box, shape: tuple[int, ...]) -> bool:
    if not len(box.offset) == len(box.shape) == len(shape):
        return False
    return all(low >= 0 and low + size <= end for low, size, end in zip(box.offset, box.shape, shape, strict=True))


def _overlap(one: Box, other: Box) -> bool:
    """Whether two boxes that hold elements share one."""
    sides = zip(one.offset, one.shape, other.offset, other.shape, strict=True)
    return all(a < b + size_b and b < a + size_a for a, size_a, b, size_b in sides)
