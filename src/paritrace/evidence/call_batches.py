"""Many lines of calls decoded to columns at once: no record is made for a call (PF-10)."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, repeat
from operator import add
from typing import Any, Literal

import msgspec

from paritrace.evidence.calls import Call

CALL_START = b'["c",'
CALL_FIELDS = tuple(name for name in Call.__struct_fields__ if name not in ("inputs", "outputs"))
WIDE = frozenset(
    {"id", "left", "parent", "link", "start_ns", "duration_ns"}
)  # grow with the run; others are ids of few
TYPECODES: Mapping[str, str] = (
    {name: "q" if name in WIDE else "i" for name in CALL_FIELDS}
    | dict.fromkeys(("inputs", "outputs", "name", "kind", "odd", "output"), "i")
    | {"bits": "Q", "source": "q", "how": "b"}
)
OF_SLOTS = frozenset({"name", "kind", "bits", "odd", "source", "output", "how"})
FROM_ORIGIN = -(1 << 31)  # in `output`: `source` is the id of an origin, or -1
BITS_DIGITS = 16

_SlotRow = tuple[int, int, str, tuple[int, int] | int, Literal[0, 1]]  # as `Slot`, written whole and without a gap
_rows: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(
    list[tuple[(Literal["c"], *(int,) * len(CALL_FIELDS), tuple[_SlotRow, ...], tuple[_SlotRow, ...])]]  # type: ignore[misc]
)


@dataclass(frozen=True, slots=True)
class CallBatch:
    """Calls as columns: one number per call of `CALL_FIELDS`, and how many `inputs` and `outputs` it has.

    One number per slot, inputs before outputs: `name`, `kind`, `bits` (the fingerprint as a number), `odd` (0, or a
    number that the taker gave to bits that are none), `source` and `output` (`FROM_ORIGIN`: an origin's id), `how`.
    """

    columns: Mapping[str, "array[int]"]

    def __len__(self) -> int:
        return len(self.columns["id"])

    def where(self, wanted: Sequence[bool]) -> "CallBatch":
        """Only the calls of which `wanted` is true."""
        counts = map(add, self.columns["inputs"], self.columns["outputs"])
        slots = list(chain.from_iterable(map(repeat, wanted, counts)))
        return CallBatch(
            {
                name: array(column.typecode, compress(column, slots if name in OF_SLOTS else wanted))
                for name, column in self.columns.items()
            }
        )


def empty_columns() -> "dict[str, array[int]]":
    """A column for each name, without a number in it."""
    return {name: array(code) for name, code in TYPECODES.items()}


NO_CALLS = CallBatch(empty_columns())


def decode_calls(lines: Sequence[bytes]) -> CallBatch | None:
    """Decode lines of calls; None when one of them is not plainly right: then each must be looked at (EV-8).

    Plainly right is a line that a writer writes: all fields, whole numbers of 64 bits, fingerprints of 16 digits.
    """
    try:
        rows = _rows.decode(b"[" + b",".join(lines) + b"]")
        return _batch(rows) if len(rows) == len(lines) else None
    except (msgspec.DecodeError, RecursionError, OverflowError):
        return None


def _batch(rows: Sequence[Sequence[Any]]) -> CallBatch | None:
    if not rows:
        return NO_CALLS
    _, *numbers, inputs, outputs = zip(*rows, strict=True)
    slots: list[tuple[Any, ...]] = list(chain.from_iterable(chain.from_iterable(zip(inputs, outputs, strict=True))))
    names, kinds, bits, sources, hows = zip(*slots, strict=True) if slots else ((),) * 5
    words = hex_words(bits)
    if words is None:
        return None
    return batch_of(
        dict(zip(CALL_FIELDS, numbers, strict=True))
        | {"inputs": list(map(len, inputs)), "outputs": list(map(len, outputs))}
        | {"name": names, "kind": kinds, "bits": words, "odd": array("i", bytes(4 * len(slots))), "how": hows}
        | sources_of(sources)
    )


def sources_of(sources: Iterable[tuple[int, int] | int]) -> dict[str, Iterable[int]]:
    """The columns `source` and `output` of slots."""
    pairs = [(source, FROM_ORIGIN) if type(source) is int else source for source in sources]
    first, second = zip(*pairs, strict=True) if pairs else ((), ())
    return {"source": first, "output": second}


def batch_of(values: Mapping[str, Iterable[int]]) -> CallBatch:
    """Columns from their numbers.

    Raises:
        OverflowError: one does not fit 64 bits.
    """
    return CallBatch({name: numbers(TYPECODES[name], column) for name, column in values.items()})


def numbers(typecode: str, values: Iterable[int]) -> "array[int]":
    """An array of the numbers; of 64 bits where they do not fit the type."""
    if isinstance(values, array):
        return values
    try:
        return array(typecode, values)
    except OverflowError:
        if typecode in "qQ":
            raise
        return array("q", values)


def hex_words(texts: Sequence[str]) -> "array[int] | None":
    """The numbers of fingerprints of 16 lower-case hex digits each; None if any is something else."""
    text = "".join(texts)
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    if data.hex() != text or set(map(len, texts)) - {BITS_DIGITS}:
        return None
    words = array("Q", data)
    words.byteswap()
    return words
