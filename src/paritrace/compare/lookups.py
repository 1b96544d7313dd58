"""Looking numbers up for whole columns at once, and calls by their ids (CP-17)."""

from array import array
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
SPARSE = 8  # a table of all numbers between the ids of calls is quicker than a search, and no larger than columns
DENSE = 1 << 22  # ids of definitions are given one after the other: a table of this many words holds them


def looked_up(column: Numbers, table: Mapping[int, int]) -> Numbers:
    """`table[value]` of every value, as int64.

    Raises:
        KeyError: a value is not in the table.
    """
    if not len(column):
        return np.array([], dtype=np.int64)
    low, high = int(column.min()), int(column.max())
    if high - low >= DENSE:
        values, where = np.unique(column, return_inverse=True)
        rare: Numbers = np.array([table[value] for value in values.tolist()], dtype=np.int64)[where]
        return rare
    known = np.zeros(high - low + 1, dtype=np.bool_)
    words = np.zeros(high - low + 1, dtype=np.int64)
    for key, word in table.items():
        if low <= key <= high:
            known[key - low], words[key - low] = True, word
    places = np.subtract(column, low, dtype=np.int64)
    if not known[places].all():
        raise KeyError(int(column[~known[places]][0]))
    found: Numbers = words[places]
    return found


def distinct(column: Numbers) -> Numbers:
    """The values that occur, rising."""
    span = _span(column)
    if span is None:
        rising = np.sort(column)
        found: Numbers = rising[np.append(True, rising[1:] != rising[:-1])]  # `np.unique` loads all of `numpy.ma`
        return found
    low, size = span
    return np.flatnonzero(np.bincount(np.subtract(column, low, dtype=np.int64), minlength=size)) + low


def _span(column: Numbers) -> tuple[int, int] | None:
    """The lowest value and how many there may be, where a table holds them."""
    if not len(column):
        return 0, 0
    low, high = int(column.min()), int(column.max())
    return (low, high - low + 1) if high - low < DENSE else None


def pairs_of(first: Numbers, second: Numbers) -> tuple[list[tuple[int, int]], Numbers]:
    """The distinct pairs of values of two columns in the order of appearance, and the number of its pair by place."""
    if not len(first):
        return [], np.array([], dtype=np.int64)
    left, right = _span(first), _span(second)
    if left is None or right is None or left[1] * right[1] >= DENSE:
        return _pairs_of_many(first, second)
    codes = np.subtract(first, left[0], dtype=np.int64) * right[1] + np.subtract(second, right[0], dtype=np.int64)
    at = np.full(left[1] * right[1], -1)
    at[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the first place of each is written last
    used = np.flatnonzero(at >= 0)
    used = used[np.argsort(at[used])]
    number = np.empty(len(at), dtype=np.int64)
    number[used] = np.arange(len(used))
    return [(code // right[1] + left[0], code % right[1] + right[0]) for code in used.tolist()], number[codes]


def _pairs_of_many(first: Numbers, second: Numbers) -> tuple[list[tuple[int, int]], Numbers]:
    left, at_left = np.unique(first, return_inverse=True)
    right, at_right = np.unique(second, return_inverse=True)
    codes, at, where = np.unique(
        at_left.astype(np.int64) * len(right) + at_right, return_index=True, return_inverse=True
    )
    order = np.argsort(at)
    number = np.empty(len(codes), dtype=np.int64)
    number[order] = np.arange(len(codes))
    found = [(int(left[code // len(right)]), int(right[code % len(right)])) for code in codes[order].tolist()]
    return found, number[where]


def compact(column: Numbers, typecode: str) -> "array[int]":
    """The same numbers as an array whose items are plain integers."""
    return array(typecode, column.astype(np.dtype(typecode)).tobytes())


class IdIndex(Mapping[int, int]):
    """Index of a call by its id; of equal ids the last."""

    def __init__(self, ids: Numbers) -> None:
        self._ids = compact(ids, "q")

    def __getitem__(self, key: int) -> int:
        place = bisect_right(self._ids, key) - 1
        if place < 0 or self._ids[place] != key:
            raise KeyError(key)
        return place

    def get(self, key: int, default: Any = None) -> Any:
        """As of a dict, without an exception on the way."""
        place = bisect_right(self._ids, key) - 1
        return default if place < 0 or self._ids[place] != key else place

    def places(self, wanted: Numbers) -> Numbers:
        """The index of each id, -1 where there is none."""
        ids = np.frombuffer(self._ids, dtype=np.int64) if self._ids else np.array([], dtype=np.int64)
        if not len(ids):
            return np.full(len(wanted), -1)
        low, size = int(ids[0]), int(ids[-1]) - int(ids[0]) + 1  # they rise
        if size <= SPARSE * len(ids):
            table = np.full(size + 1, -1, np.int32)  # the last is of what is beyond
            table[ids - low] = np.arange(len(ids))
            beyond = (wanted < low) | (wanted >= low + size)
            return table[np.where(beyond, -1, np.subtract(wanted, low, dtype=np.int64))].astype(np.int64)
        place = np.searchsorted(ids, wanted, side="right") - 1
        return np.where((place >= 0) & (ids[place] == wanted), place, -1)

    def __iter__(self) -> Iterator[int]:
        return iter(dict.fromkeys(self._ids))

    def __len__(self) -> int:
        return len(set(self._ids))


class Interner:
    """Numbers for values, the same for both sides."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def __call__(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))
