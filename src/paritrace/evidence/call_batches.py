"""Many lines of calls decoded to columns at once: no record is made for a call (PF-10)."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from paritrace.evidence.calls import Call
from paritrace.evidence.gaps import CaptureGap, Gap

CALL_START = b'["c",'
CALL_FIELDS = tuple(name for name in Call.__struct_fields__ if name not in ("inputs", "outputs"))
SLOT_COLUMNS = ("name", "kind", "bits", "odd", "source", "output", "how")
COLUMNS = (*CALL_FIELDS, "inputs", "outputs", *SLOT_COLUMNS)
OF_SLOTS = frozenset(SLOT_COLUMNS)
FROM_ORIGIN = -(1 << 31)  # in `output`: `source` is the id of an origin, or -1
BITS_DIGITS = 16
WIDTHS = (np.int8, np.int16, np.int32)
Numbers = npt.NDArray[Any]

_SlotRow = tuple[int, int, str, tuple[int, int] | int, Literal[0, 1]]  # as `Slot`, written whole and without a gap
_rows: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(
    list[tuple[(Literal["c"], *(int,) * len(CALL_FIELDS), tuple[_SlotRow, ...], tuple[_SlotRow, ...])]]  # type: ignore[misc]
)


@dataclass(frozen=True, slots=True)
class CallBatch:
    """Calls as columns: one number per call of `CALL_FIELDS`, and how many `inputs` and `outputs` it has.

    One number per slot, inputs before outputs: `name`, `kind`, `bits` (the fingerprint as a number), `odd` (0, or a
    number that the taker gave to bits that are none; 1 + place in `odd_values` where these are given), `source` and
    `output` (`FROM_ORIGIN`: an origin's id), `how`.
    """

    columns: Mapping[str, Numbers]
    odd_values: Sequence[Gap[CaptureGap]] = ()

    def __len__(self) -> int:
        return len(self.columns["id"])

    def where(self, wanted: Numbers) -> "CallBatch":
        """Only the calls of which `wanted` is true."""
        slots = np.repeat(wanted, self.columns["inputs"].astype(np.int64) + self.columns["outputs"])
        columns = {name: column[slots if name in OF_SLOTS else wanted] for name, column in self.columns.items()}
        return CallBatch(columns, self.odd_values)


def joined(batches: Sequence[CallBatch]) -> CallBatch:
    """All calls of the batches, in their order; whole numbers in as few bytes as hold them."""
    if len(batches) == 1:
        columns = batches[0].columns
    else:
        columns = {name: np.concatenate([batch.columns[name] for batch in batches]) for name in COLUMNS}
    return CallBatch({name: column if name == "bits" else narrow(column) for name, column in columns.items()})


def narrow(column: Numbers) -> Numbers:
    """The same whole numbers in as few bytes as hold them, copied only where they get narrower."""
    if column.dtype == WIDTHS[0]:
        return column
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    for width in WIDTHS:
        bounds = np.iinfo(width)
        if bounds.min <= low and high <= bounds.max:
            return column.astype(width, copy=False)
    return column.astype(np.int64, copy=False)


NO_CALLS = CallBatch({name: np.array([], np.uint64 if name == "bits" else np.int8) for name in COLUMNS})


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
        | {"name": names, "kind": kinds, "bits": words, "odd": bytes(len(slots)), "how": hows}
        | sources_of(sources)
    )


def sources_of(sources: Iterable[tuple[int, int] | int]) -> dict[str, Sequence[int]]:
    """The columns `source` and `output` of slots."""
    pairs = [(source, FROM_ORIGIN) if type(source) is int else source for source in sources]
    first, second = zip(*pairs, strict=True) if pairs else ((), ())
    return {"source": first, "output": second}


def batch_of(values: Mapping[str, Sequence[int]]) -> CallBatch:
    """Columns from their numbers.

    Raises:
        OverflowError: one does not fit 64 bits.
    """
    bits = {"bits": np.array(array("Q", values["bits"]), np.uint64)}
    return CallBatch({name: _numbers(column) for name, column in values.items() if name != "bits"} | bits)


def _numbers(values: Sequence[int]) -> Numbers:
    return np.array(array("q", list(values) if isinstance(values, bytes) else values), np.int64)


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
