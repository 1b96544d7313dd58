"""The calls of one session as columns: a call is a row of numbers until somebody asks for it (CP-17, PF-9, PF-10)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

from paritrace.compare.lookups import distinct
from paritrace.evidence.call_batches import (
    BITS_DIGITS,
    CALL_FIELDS,
    COLUMNS,
    FROM_ORIGIN,
    NO_CALLS,
    OF_SLOTS,
    CallBatch,
    batch_of,
    hex_words,
    joined,
    sources_of,
)
from paritrace.evidence.calls import Call, How, Slot
from paritrace.evidence.gaps import CaptureGap, Gap

Numbers = npt.NDArray[Any]
Bits = str | Gap[CaptureGap]

PLAIN = 0  # in `odd`: the bits are the number in `bits`
BLOCK = 1024  # calls made at once when all are read in order
JOINED = 8192  # calls taken in before their numbers are made narrow
KEPT = 4096  # calls that were asked for one by one and are kept made


class CallColumns(Sequence[Call]):
    """A sequence of calls that takes about 110 bytes for one with three slots; made calls equal those taken in.

    `take` appends in any order, `settle` sorts by id; after that the columns are NumPy arrays, as narrow as their
    numbers allow: one value per call of
    `CALL_FIELDS`, and per slot `name`, `kind`, `bits` (uint64), `odd` (0, or 1 + place in `odd_values` where the bits
    are a gap or no 16 hex digits), `source`, `output` and `how`. The slots of call i are those from `first[i]` to
    `first[i + 1]`, its outputs from `middle[i]` on.
    """

    def __init__(self) -> None:
        self._growing: list[CallBatch] = []
        self._waiting: list[CallBatch] = []  # batches that are too small to be kept as they are
        self._num_waiting = 0
        self._columns: dict[str, Numbers] = {}
        self._values: dict[str, memoryview] = {}  # the same, an item at a time as a plain number
        self._made: dict[int, Call] = {}
        self.odd_values: list[Bits] = []
        self._odd_places: dict[Bits, int] = {}

    # --- taking in ---------------------------------------------------------------------------------------------

    def take(self, calls: Sequence[Call]) -> None:
        """Append calls; at least one.

        Raises:
            OverflowError: a number does not fit 64 bits; nothing was taken.
        """
        found: dict[str, Any] = dict(zip(_ALL_FIELDS, zip(*map(astuple, calls), strict=True), strict=True))
        inputs, outputs = found.pop("inputs"), found.pop("outputs")
        slots: list[Slot] = list(chain.from_iterable(chain.from_iterable(zip(inputs, outputs, strict=True))))
        found["inputs"], found["outputs"] = [*map(len, inputs)], [*map(len, outputs)]
        names, kinds, bits, sources, hows = zip(*map(astuple, slots), strict=True) if slots else ((),) * 5
        found |= {"name": names, "kind": kinds, "how": hows, **sources_of(sources)}
        found["bits"], found["odd"] = self._bits(bits)
        self.extend(batch_of(found))

    def extend(self, batch: CallBatch) -> None:
        """Append calls that are columns already; `odd` says 0, or what `_bits` gave, or its own gaps."""
        if batch.odd_values:
            own = np.array([PLAIN, *map(self._odd, batch.odd_values)])
            batch = CallBatch({**batch.columns, "odd": own[batch.columns["odd"]]})
        if len(batch) >= JOINED:
            self._join()  # what came before stays before it
        self._waiting.append(batch)
        self._num_waiting += len(batch)
        if self._num_waiting >= JOINED:
            self._join()

    def _join(self) -> None:
        if self._waiting:
            self._growing.append(joined(self._waiting))
        self._waiting, self._num_waiting = [], 0

    def _bits(self, bits: Sequence[Bits]) -> tuple[Sequence[int], Sequence[int]]:
        texts = [value if type(value) is str else _NOTHING for value in bits]
        numbers = hex_words(texts)
        if numbers is not None:
            return numbers, [PLAIN if type(value) is str else self._odd(value) for value in bits]
        values = [hex_words([value]) if type(value) is str else None for value in bits]
        words = [0 if value is None else value[0] for value in values]
        return words, [PLAIN if v is not None else self._odd(b) for b, v in zip(bits, values, strict=True)]

    def _odd(self, bits: Bits) -> int:
        if bits not in self._odd_places:
            self.odd_values.append(bits)
            self._odd_places[bits] = len(self.odd_values)
        return self._odd_places[bits]

    def settle(self) -> None:
        """Bring the calls into the order of their ids; nothing is taken in after that."""
        self._join()
        growing = self._growing or [NO_CALLS]
        columns = {name: np.concatenate([batch.columns[name] for batch in growing]) for name in COLUMNS}
        self._growing = growing = []
        order = np.argsort(columns["id"], kind="stable")
        self._adopt(columns, None if bool((order[1:] > order[:-1]).all()) else order)

    def _adopt(self, columns: dict[str, Numbers], order: Numbers | None) -> None:
        """Take columns over, with the calls that `order` names, in its order."""
        counts = columns["inputs"].astype(np.int64) + columns["outputs"]
        first = np.concatenate(([0], np.cumsum(counts)))
        if order is not None:
            slots = _runs(first[:-1][order], counts[order])
            for name in list(columns):
                columns[name] = columns[name].take(slots if name in OF_SLOTS else order)
            first = np.concatenate(([0], np.cumsum(counts[order])))
        columns["first"] = first = first.astype(np.int32 if first[-1] < 1 << 31 else np.int64)
        columns["middle"] = (first[:-1] + columns["inputs"]).astype(first.dtype)
        self._columns = columns
        self._values = {name: column.data for name, column in columns.items()}

    def where(self, mask: Numbers) -> "CallColumns":
        """Only the calls for which `mask` is true."""
        found = CallColumns()
        found.odd_values, found._odd_places = self.odd_values, self._odd_places
        plain = {name: column for name, column in self._columns.items() if name not in ("first", "middle")}
        found._adopt(plain, np.flatnonzero(mask))
        return found

    def with_gap(self, gap: CaptureGap) -> list[int]:
        """The calls with an output that has this gap instead of bits, rising."""
        odd = [place for place, value in enumerate(self.odd_values, 1) if isinstance(value, Gap) and value.gap is gap]
        places = np.flatnonzero(np.isin(self._columns["odd"], odd)) if odd else np.array([], np.int64)
        owners = np.searchsorted(self._columns["first"], places, side="right") - 1
        found: list[int] = distinct(owners[places >= self._columns["middle"][owners]]).tolist()
        return found

    def replace_outputs(self, index: int, bits: Sequence[Bits]) -> None:
        """Give a call's outputs other bits, one for each."""
        start = int(self._columns["middle"][index])
        numbers, odd = self._bits(bits)
        if max(odd, default=PLAIN) > np.iinfo(self._columns["odd"].dtype).max:
            self._columns["odd"] = self._columns["odd"].astype(np.int64)
            self._values["odd"] = self._columns["odd"].data
        for place, (number, code) in enumerate(zip(numbers, odd, strict=True)):
            self._columns["bits"][start + place] = number
            self._columns["odd"][start + place] = code
        self._made.pop(index, None)

    # --- reading -----------------------------------------------------------------------------------------------

    def column(self, name: str) -> Numbers:
        """A column by the name that the class description gives; not to be written to."""
        return self._columns[name]

    def values(self, name: str) -> "memoryview[int]":
        """A column of which single items are read: they are plain numbers."""
        return self._values[name]

    def distinct(self, name: str) -> list[int]:
        """The values that occur in a column, rising."""
        found: list[int] = distinct(self._columns[name]).tolist()
        return found

    def inputs_of(self, index: int) -> range:
        """The places of a call's inputs in the columns of slots."""
        return range(self._values["first"][index], self._values["middle"][index])

    def outputs_of(self, index: int) -> range:
        """The places of a call's outputs in the columns of slots."""
        return range(self._values["middle"][index], self._values["first"][index + 1])

    def readers(self, index: int, *, until: int) -> list[int]:
        """The calls behind this one and before index `until` with an input that it made, rising."""
        first, until = self._columns["first"], min(until, len(self))
        start, end = int(first[index + 1]), int(first[until])
        made = self._columns["source"][start:end] == self._values["id"][index]
        slots = np.flatnonzero(made & (self._columns["output"][start:end] != FROM_ORIGIN)) + start
        owners = np.searchsorted(first[index:until], slots, side="right") - 1 + index
        inputs: list[int] = owners[slots < self._columns["middle"][owners]].tolist()
        return list(dict.fromkeys(inputs))

    def bits_at(self, place: int) -> Bits:
        """The bits of a slot as they were recorded."""
        odd = int(self._columns["odd"][place])
        return f"{int(self._columns['bits'][place]):016x}" if odd == PLAIN else self.odd_values[odd - 1]

    def bits_between(self, start: int, end: int) -> list[Bits]:
        """The bits of the slots from one place to another."""
        digits = self._columns["bits"][start:end].astype(">u8").tobytes().hex()
        found: list[Bits] = [digits[at : at + BITS_DIGITS] for at in range(0, len(digits), BITS_DIGITS)]
        odd = self._columns["odd"][start:end]
        for place in np.flatnonzero(odd != PLAIN).tolist():
            found[place] = self.odd_values[int(odd[place]) - 1]
        return found

    def __len__(self) -> int:
        return len(self._columns["id"]) if self._columns else sum(map(len, self._growing)) + self._num_waiting

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> list[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | list[Call]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        made = self._made.get(index)
        if made is None:
            made = self._one(range(len(self))[index])
            if len(self._made) >= KEPT:
                self._made.clear()
            self._made[index] = made
        return made

    def __iter__(self) -> Iterator[Call]:
        for start in range(0, len(self), BLOCK):
            yield from self._block(start, min(start + BLOCK, len(self)))

    def _one(self, index: int) -> Call:
        v = self._values
        fields = [v[name][index] for name in CALL_FIELDS]
        first, middle, last = v["first"][index], v["middle"][index], v["first"][index + 1]
        inputs = tuple([self._slot(place) for place in range(first, middle)])
        outputs = tuple([self._slot(place) for place in range(middle, last)])
        return _MAKE(*fields, inputs, outputs)

    def _slot(self, place: int) -> Slot:
        v = self._values
        odd, source, output = v["odd"][place], v["source"][place], v["output"][place]
        bits = f"{v['bits'][place]:016x}" if odd == PLAIN else self.odd_values[odd - 1]
        where = source if output == FROM_ORIGIN else (source, output)
        return Slot(v["name"][place], v["kind"][place], bits, where, _HOW[v["how"][place]])

    def _text(self, number: int, odd: int) -> Bits:
        return f"{number:016x}" if odd == PLAIN else self.odd_values[odd - 1]

    def _block(self, start: int, end: int) -> list[Call]:
        c = self._columns
        low, high = int(c["first"][start]), int(c["first"][end])
        slots = self._slots(low, high)
        fields = [c[name][start:end].tolist() for name in CALL_FIELDS]
        bounds = zip(
            c["first"][start:end].tolist(),
            c["middle"][start:end].tolist(),
            c["first"][start + 1 : end + 1].tolist(),
            strict=True,
        )
        return [
            _MAKE(*values, tuple(slots[first - low : middle - low]), tuple(slots[middle - low : last - low]))
            for values, (first, middle, last) in zip(zip(*fields, strict=True), bounds, strict=True)
        ]

    def _slots(self, low: int, high: int) -> list[Slot]:
        c = self._columns
        names = ("name", "kind", "bits", "odd", "source", "output", "how")
        return [
            Slot(
                name,
                kind,
                self._text(bits, odd),
                source if output == FROM_ORIGIN else (source, output),
                _HOW[how],
            )
            for name, kind, bits, odd, source, output, how in zip(
                *(c[column][low:high].tolist() for column in names), strict=True
            )
        ]


_ALL_FIELDS = Call.__struct_fields__
_MAKE: Callable[..., Call] = Call  # from a list of its fields
_NOTHING = "0" * 16  # stands where there are no bits
_HOW: Mapping[int, How] = {how.value: how for how in How}


def _runs(starts: Numbers, lengths: Numbers) -> Numbers:
    """The numbers of all ranges that start there and are so long, end to end."""
    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)
