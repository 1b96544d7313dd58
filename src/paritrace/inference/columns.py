"""Values that repeat as small numbers, ids as integers, rows in one piece of memory: columns of a million events."""

import re
from array import array
from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Key = TypeVar("Key", bound=Hashable)
Numbers = npt.NDArray[np.int64]
UNKNOWN = -(1 << 63)  # in a column: not known; no time of a trace reaches it
_PLAIN = re.compile(r"(?:0|-?[1-9]\d{0,17})\Z", re.ASCII)
_LARGEST_ID = 1 << 61


def listed(column: Numbers, /) -> list[int]:
    """Return a column as Python's own integers."""
    found: list[int] = column.tolist()
    return found


class Codes(Generic[Key]):
    """Small numbers for values that repeat; the values, in the order in which they came."""

    def __init__(self) -> None:
        self._codes: dict[Key, int] = {}

    def __getitem__(self, value: Key) -> int:
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self._codes)
        return code

    def __len__(self) -> int:
        return len(self._codes)

    def known(self, value: Key, /) -> int | None:
        """Return the number of a value that came already, None for another."""
        return self._codes.get(value)

    @property
    def values(self) -> list[Key]:
        """The values by their codes."""
        return list(self._codes)


class Table:
    """Rows of integers, in one piece of memory; `add` takes a whole row, in the order of the names."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._rows = array("q")
        self.add = self._rows.extend

    def __getitem__(self, name: str) -> Numbers:
        """Return a column; rows that are added later are not in it."""
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, len(self._names))
        return np.ascontiguousarray(rows[:, self._names.index(name)])

    def __len__(self) -> int:
        return len(self._rows) // len(self._names)


class Ids:
    """Correlation ids as integers: text that spells one is that number, other text has a number of its own (B-08)."""

    def __init__(self) -> None:
        self._others: Codes[str] = Codes()

    def __getitem__(self, text: str) -> int:
        if _PLAIN.match(text):
            return int(text)
        return _LARGEST_ID + self._others[text]

    def known(self, text: str, /) -> int | None:
        """Return the number of an id that spells one or came already, None for another."""
        if _PLAIN.match(text):
            return int(text)
        code = self._others.known(text)
        return None if code is None else _LARGEST_ID + code

    def text(self, number: int, /) -> str:
        """Return the id that has this number."""
        return str(number) if number < _LARGEST_ID else self._others.values[number - _LARGEST_ID]
