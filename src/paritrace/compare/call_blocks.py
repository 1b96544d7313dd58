"""Many rows of calls as columns: what `calls.parquet` is written from, and rows are made of (CP-16, CP-17)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from paritrace.compare.lookups import Numbers
from paritrace.compare.rows import CallRow, SlotRow

Value = TypeVar("Value")
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class Coded(Generic[Value]):
    """A column of few different values: row n holds `values[codes[n]]`."""

    codes: Numbers
    values: Sequence[Value]

    def map(self, told: "Callable[[Value], Told]") -> "Coded[Told]":
        """What a function makes of each value, asked once for each."""
        return Coded(self.codes, [told(value) for value in self.values])

    def __iter__(self) -> Iterator[Value]:
        return map(self.values.__getitem__, self.codes.tolist())


Column = Coded[Any] | Numbers | Sequence[Any]


def coded(ids: Numbers, told: Callable[[int], Value]) -> Coded[Value]:
    """A column of what ids stand for."""
    values, codes = np.unique(ids, return_inverse=True)
    return Coded(codes, [told(value) for value in values.tolist()])


def mapped(column: Column, told: Callable[[Any], Any]) -> Column:
    """What a function makes of each value of a column."""
    return column.map(told) if isinstance(column, Coded) else [told(value) for value in items(column)]


def items(column: Column) -> Iterable[Any]:
    """The values of a column, numbers as plain numbers."""
    return column.tolist() if isinstance(column, np.ndarray) else column


class Summary(NamedTuple):
    """What only a full summary says of a slot; empty where none was recorded. The size is that of the slot."""

    xor: str = ""
    regions: str = ""
    elements: str = ""
    semantics: str = ""
    logical_nbytes: int = 0


NO_SUMMARY = Summary()
OF_SUMMARY = ("xor", "regions", "elements", "semantics")
CALL_COLUMNS = tuple(name for name in CallRow.__struct_fields__ if name != "slots")
SLOT_COLUMNS = tuple(name for name in SlotRow.__struct_fields__ if name not in OF_SUMMARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBlock:
    """Calls of one side of one rank. `calls` has a column for each field of `CallRow` but its slots.

    `slots` has one for each field of `SlotRow` but those of `summaries`. The slots of row n are those from `first[n]`
    to `first[n + 1]`.
    """

    calls: Mapping[str, Column]
    first: Numbers
    slots: Mapping[str, Column]
    summaries: Column  # of `Summary`

    def __len__(self) -> int:
        return len(self.first) - 1

    def rows(self) -> Iterator[CallRow]:
        """The same as rows."""
        told = {**self.slots, **{name: mapped(self.summaries, attrgetter(name)) for name in OF_SUMMARY}}
        slots = list(map(SlotRow, *(items(told[name]) for name in SlotRow.__struct_fields__)))
        first: list[int] = self.first.tolist()
        columns = {name: items(column) for name, column in self.calls.items()}
        columns["slots"] = [tuple(slots[start:end]) for start, end in pairwise(first)]
        return map(CallRow, *(columns[name] for name in CallRow.__struct_fields__))


def block_of(rows: Sequence[CallRow]) -> CallBlock:
    """Rows, of any side and rank, as a block."""
    slots = [slot for row in rows for slot in row.slots]
    return CallBlock(
        calls={name: [getattr(row, name) for row in rows] for name in CALL_COLUMNS},
        first=np.cumsum([0, *(len(row.slots) for row in rows)]),
        slots={name: [getattr(slot, name) for slot in slots] for name in SLOT_COLUMNS},
        summaries=[Summary(s.xor, s.regions, s.elements, s.semantics, s.logical_nbytes) for s in slots],
    )
