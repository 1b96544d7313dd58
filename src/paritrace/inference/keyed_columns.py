"""Rows under correlation ids, in columns that are sorted once: what a million launches need of memory (IN-7, IN-24)."""

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterator

import numpy as np

from paritrace.inference.columns import Codes, Ids


class KeyedColumns:
    """Rows of integers, each with the id of its event, under a key: a place where ids are unique, and an id there.

    Rows are added first and looked up then. Some 30 bytes for each, besides its integers and its event's id.
    """

    def __init__(self, num_columns: int) -> None:
        self._num_columns = num_columns
        self._scopes: Codes[Hashable] = Codes()
        self._numbers = Ids()
        self._ids, self._of_scope = array("q"), array("i")
        self._rows = array("q")
        self._events, self._ends = bytearray(), array("q", [0])
        self._sorted: tuple[array[int], array[int]] | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, scope: Hashable, number: str, row: tuple[int, ...], event_id: str) -> None:
        """Add a row."""
        self._ids.append(self._numbers[number])
        self._of_scope.append(self._scopes[scope])
        self._rows.extend(row)
        self._events += event_id.encode()
        self._ends.append(len(self._events))
        self._sorted = None

    def of(self, scope: Hashable, number: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the rows under a key in the order in which they came, each with the id of its event."""
        code, wanted = self._scopes.known(scope), self._numbers.known(number)
        if code is None or wanted is None:
            return
        ids, places = self._in_order()
        at = bisect_left(ids, wanted)
        while at < len(ids) and ids[at] == wanted:
            place = places[at]
            if self._of_scope[place] == code:
                row = self._rows[place * self._num_columns : (place + 1) * self._num_columns]
                yield self._events[self._ends[place] : self._ends[place + 1]].decode(), tuple(row)
            at += 1

    def _in_order(self) -> tuple["array[int]", "array[int]"]:
        """The ids, rising, and the rows that have them."""
        if self._sorted is None:
            ids = np.array(self._ids, dtype=np.int64)
            order = np.argsort(ids, kind="stable")
            self._sorted = array("q", ids[order].tobytes()), array("q", order.astype(np.int64).tobytes())
        return self._sorted
