"""calls.parquet: every call of both sides with its counterpart, status and fingerprints, in bounded batches (CP-16)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from io import RawIOBase
from itertools import accumulate, islice
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from paritrace.compare.element_figures import ElementFigures
from paritrace.compare.rows import CallRow, SlotRow
from paritrace.evidence.fingerprints import region_ranges
from paritrace.evidence.gaps import Gap

BATCH_ROWS = 8192  # with ten slots a call this is about 30 MB while a batch is made
XOR_SCHEME = "flat-u32-le-v1"
XOR_DIGITS = 8  # hex digits of one region
STRONG_DIGITS = 16

_WORD = pa.dictionary(pa.int32(), pa.string())
_RANGE = pa.struct([("begin", pa.int64()), ("end", pa.int64())])
SLOT = pa.struct(
    [
        ("direction", _WORD),
        ("name", _WORD),
        ("dtype", _WORD),
        ("shape", pa.list_(pa.int64())),
        ("logical_nbytes", pa.int64()),
        ("bits", pa.string()),
        ("bits_gap", _WORD),
        ("bits_scheme", _WORD),
        ("elements", pa.string()),
        ("elements_scheme", _WORD),
        ("xor", pa.list_(pa.string())),
        ("xor_scheme", _WORD),
        ("region_bits", pa.list_(pa.string())),
        ("regions", pa.int32()),
        ("byte_ranges", pa.list_(_RANGE)),
        ("agreement", _WORD),
        ("elements_compared", pa.int64()),
        ("elements_masked", pa.int64()),
        ("mismatches", pa.int64()),
        ("first_mismatch", pa.list_(pa.int64())),
        ("non_finite_apart", pa.int64()),
        ("max_absolute", pa.float64()),
        ("max_relative", pa.float64()),
        ("max_ulp", pa.float64()),
        ("cosine", pa.float64()),
        ("strides", pa.list_(pa.int64())),
        ("semantics", _WORD),
    ]
)
FIGURES = (
    "elements_compared",
    "elements_masked",
    "mismatches",
    "first_mismatch",
    "non_finite_apart",
    "max_absolute",
    "max_relative",
    "max_ulp",
    "cosine",
)
"""Columns of a slot that are of its pair: element by element (CP-11)."""

SCHEMA = pa.schema(
    [
        ("side", _WORD),
        ("rank", pa.int32()),
        ("session_id", _WORD),
        ("record_id", pa.int64()),
        ("step", pa.int64()),
        ("microbatch", pa.int32()),
        ("phase", _WORD),
        ("level", _WORD),
        ("function", _WORD),
        ("file", _WORD),
        ("line", pa.int32()),
        ("module", _WORD),
        ("stream", _WORD),
        ("scope", _WORD),
        ("key", _WORD),
        ("status", _WORD),
        ("correspondence", _WORD),
        ("basis", _WORD),
        ("reason", _WORD),
        ("partner", pa.int64()),
        ("reordered", pa.bool_()),
        ("difference_class", _WORD),
        ("group", _WORD),
        ("slots", pa.list_(SLOT)),
        ("scalars", _WORD),
        ("validation", _WORD),
        ("thread", _WORD),
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
    ]
)
KNOWN_FROM_0 = ("partner", "start_ns", "duration_ns")  # a row says -1 where there is none, a table null
PLAIN = tuple(
    name for name in SCHEMA.names if name not in {*KNOWN_FROM_0, "slots"}
)  # columns that are a field as it is


class Sink(Protocol):
    """Where the bytes of a file go."""

    def write(self, data: bytes, /) -> object: ...


def write_calls(rows: Iterable[CallRow], /, sink: Sink, *, schemes: Mapping[str, str]) -> int:
    """Writes the rows as Parquet and returns how many there were.

    Args:
        rows: every call of both sides; read once.
        sink: takes the bytes in order.
        schemes: role -> scheme of the fingerprints (`bits`, `elements`), written beside each of them (CP-24).
    """
    total = 0
    stream = pa.PythonFile(Writable(sink), mode="w")
    with pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        for batch in _batches(rows):
            writer.write_batch(_record_batch(batch, schemes=schemes))
            total += len(batch)
    return total


def _batches(rows: Iterable[CallRow]) -> Iterator[list[CallRow]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH_ROWS)):
        yield batch


def _record_batch(rows: list[CallRow], *, schemes: Mapping[str, str]) -> pa.RecordBatch:
    columns = {name: [getattr(row, name) for row in rows] for name in PLAIN}
    for name in KNOWN_FROM_0:
        values = [getattr(row, name) for row in rows]
        columns[name] = [value if value >= 0 else None for value in values]
    arrays = [
        _slots(rows, schemes=schemes) if field.name == "slots" else pa.array(columns[field.name], type=field.type)
        for field in SCHEMA
    ]
    return pa.record_batch(arrays, schema=SCHEMA)


def _slots(rows: list[CallRow], *, schemes: Mapping[str, str]) -> pa.Array:
    """The slots of all rows end to end, column by column: several times quicker than a dict per slot."""
    offsets = [0, *accumulate(len(row.slots) for row in rows)]
    slots = [slot for row in rows for slot in row.slots]
    columns = _slot_columns(slots, schemes=schemes)
    arrays = [pa.array(columns[field.name], type=field.type) for field in SLOT]
    flat = pa.StructArray.from_arrays(arrays, fields=list(SLOT))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, type=pa.list_(SLOT))


def _slot_columns(slots: list[SlotRow], *, schemes: Mapping[str, str]) -> dict[str, list[Any]]:
    bits = [None if isinstance(slot.bits, Gap) else slot.bits for slot in slots]
    xor = [_split(slot.xor, digits=XOR_DIGITS) for slot in slots]
    region_bits = [_split(slot.regions, digits=STRONG_DIGITS) for slot in slots]
    regions = [len(words or strong or ()) for words, strong in zip(xor, region_bits, strict=True)]
    return {
        "direction": [slot.direction for slot in slots],
        "name": [slot.name for slot in slots],
        "dtype": [slot.dtype for slot in slots],
        "shape": [slot.shape for slot in slots],
        "logical_nbytes": [slot.logical_nbytes for slot in slots],
        "bits": bits,
        "bits_gap": [slot.bits.gap if isinstance(slot.bits, Gap) else None for slot in slots],
        "bits_scheme": [None if value is None else schemes.get("bits") for value in bits],
        "elements": [slot.elements or None for slot in slots],
        "elements_scheme": [schemes.get("elements") if slot.elements else None for slot in slots],
        "xor": xor,
        "xor_scheme": [XOR_SCHEME if words else None for words in xor],
        "region_bits": region_bits,
        "regions": [number or None for number in regions],
        "byte_ranges": [_ranges(s.logical_nbytes, number) for s, number in zip(slots, regions, strict=True)],
        "agreement": [slot.agreement for slot in slots],
        "strides": [slot.strides or None for slot in slots],
        "semantics": [slot.semantics or None for slot in slots],
        **_figures([slot.figures for slot in slots]),
    }


def _figures(found: list[ElementFigures | None]) -> dict[str, list[Any]]:
    """Element-wise figures (CP-11); null where there are none. ULP distances of float64 may be beyond an int64."""

    def column(read: Callable[[ElementFigures], object]) -> list[Any]:
        return [None if one is None else read(one) for one in found]

    return {
        "elements_compared": column(lambda one: one.num_elements - one.num_masked),
        "elements_masked": column(lambda one: one.num_masked),
        "mismatches": column(lambda one: one.num_mismatches),
        "first_mismatch": column(lambda one: list(one.first) if one.num_mismatches else None),
        "non_finite_apart": column(lambda one: one.num_non_finite_apart),
        "max_absolute": column(lambda one: one.max_absolute),
        "max_relative": column(lambda one: one.max_relative),
        "max_ulp": column(lambda one: None if one.max_ulp is None else float(one.max_ulp)),
        "cosine": column(lambda one: one.cosine),
    }


def _split(text: str, *, digits: int) -> list[str] | None:
    return [text[start : start + digits] for start in range(0, len(text), digits)] or None


@lru_cache(maxsize=4096)  # a model has few sizes of tensors
def _ranges(logical_nbytes: int, regions: int) -> list[dict[str, int]] | None:
    if not regions:
        return None
    return [{"begin": begin, "end": end} for begin, end in region_ranges(logical_nbytes, regions)]


class Writable(RawIOBase):
    """A sink as the file object that pyarrow writes to; closing it leaves the sink open."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any, /) -> int:
        content = bytes(data)
        self._sink.write(content)
        self._position += len(content)
        return len(content)
