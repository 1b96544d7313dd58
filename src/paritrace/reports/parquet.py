"""calls.parquet: every call of both sides with its counterpart, status and fingerprints, in bounded batches (CP-16)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from io import RawIOBase
from itertools import islice
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paritrace.compare.call_blocks import CallBlock, Coded, Column, Summary, block_of, items, mapped
from paritrace.compare.callrows import CallRows
from paritrace.compare.element_figures import ElementFigures
from paritrace.compare.rows import CallRow, Correspondence, Validation
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
VALIDATIONS = {Correspondence.PAIRED: Validation.UNREVIEWED, Correspondence.UNDETERMINED: None}


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
    return write_blocks(_batches(rows), sink, schemes=schemes)


def write_blocks(batches: Iterable[Sequence[CallBlock]], /, sink: Sink, *, schemes: Mapping[str, str]) -> int:
    """Writes the same from columns; the blocks of a batch become one group of rows, wherever they were cut."""
    total = 0
    stream = pa.PythonFile(Writable(sink), mode="w")
    with pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        for blocks in batches:
            made = [_record_batch(block, schemes=schemes) for block in blocks]
            writer.write_batch(pa.concat_batches(made))
            total += sum(map(len, blocks))
    return total


def _batches(rows: Iterable[CallRow]) -> Iterator[list[CallBlock]]:
    if isinstance(rows, CallRows):  # columns already
        yield from rows.batches(BATCH_ROWS)
        return
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH_ROWS)):
        yield [block_of(batch)]


def _record_batch(block: CallBlock, *, schemes: Mapping[str, str]) -> pa.RecordBatch:
    columns = dict(block.calls)
    columns["validation"] = mapped(columns["correspondence"], VALIDATIONS.__getitem__)
    for name in KNOWN_FROM_0:
        columns[name] = [value if value >= 0 else None for value in items(columns[name])]
    arrays = [
        _slots(block, schemes=schemes) if field.name == "slots" else _array(columns[field.name], field.type)
        for field in SCHEMA
    ]
    return pa.record_batch(arrays, schema=SCHEMA)


def _slots(block: CallBlock, *, schemes: Mapping[str, str]) -> pa.Array:
    """The slots of all rows end to end, column by column."""
    columns = {
        **block.slots,
        **_bits_columns(block.slots["bits"], schemes=schemes),
        **_summary_columns(block.summaries, schemes=schemes),
        **_figures(block.slots["figures"]),
        "strides": mapped(block.slots["strides"], lambda strides: strides or None),
    }
    flat = pa.StructArray.from_arrays([_array(columns[field.name], field.type) for field in SLOT], fields=list(SLOT))
    return pa.ListArray.from_arrays(pa.array(block.first, pa.int32()), flat, type=pa.list_(SLOT))


def _array(column: Column, kind: pa.DataType) -> pa.Array:
    if not isinstance(column, Coded):
        return pa.array(column, type=kind)
    if kind == _WORD:
        return _words(column)
    return pa.array(column.values, type=kind).take(pa.array(column.codes))


def _words(column: Coded[str | None]) -> pa.Array:
    """A dictionary of the words that occur, in the order in which they do: as pyarrow makes one of the words."""
    used, first = np.unique(column.codes, return_index=True)
    numbers: dict[str, int] = {}
    places = np.full(len(column.values), -1, np.int32)
    for code in used[np.argsort(first)].tolist():
        value = column.values[code]
        if value is not None:
            places[code] = numbers.setdefault(value, len(numbers))
    indices = places[column.codes]
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), pa.array([*numbers], pa.string()))


def _bits_columns(column: Column, *, schemes: Mapping[str, str]) -> dict[str, Column]:
    bits = list(items(column))
    gaps = [isinstance(value, Gap) for value in bits]
    return {
        "bits": [None if gap else value for gap, value in zip(gaps, bits, strict=True)],
        "bits_gap": [value.gap if gap else None for gap, value in zip(gaps, bits, strict=True)],
        "bits_scheme": Coded(np.array(gaps, np.int8), (schemes.get("bits"), None)),
    }


def _summary_columns(column: Column, *, schemes: Mapping[str, str]) -> dict[str, Column]:
    of: dict[str, Callable[[Summary], object]] = {
        "elements": lambda one: one.elements or None,
        "elements_scheme": lambda one: schemes.get("elements") if one.elements else None,
        "xor": lambda one: _split(one.xor, digits=XOR_DIGITS),
        "xor_scheme": lambda one: XOR_SCHEME if one.xor else None,
        "region_bits": lambda one: _split(one.regions, digits=STRONG_DIGITS),
        "regions": lambda one: _num_regions(one) or None,
        "byte_ranges": lambda one: _ranges(one.logical_nbytes, _num_regions(one)),
        "semantics": lambda one: one.semantics or None,
    }
    return {name: mapped(column, told) for name, told in of.items()}


def _figures(column: Column) -> dict[str, Column]:
    """Element-wise figures (CP-11); null where there are none. ULP distances of float64 may be beyond an int64."""
    of: dict[str, Callable[[ElementFigures], object]] = {
        "elements_compared": lambda one: one.num_elements - one.num_masked,
        "elements_masked": lambda one: one.num_masked,
        "mismatches": lambda one: one.num_mismatches,
        "first_mismatch": lambda one: list(one.first) if one.num_mismatches else None,
        "non_finite_apart": lambda one: one.num_non_finite_apart,
        "max_absolute": lambda one: one.max_absolute,
        "max_relative": lambda one: one.max_relative,
        "max_ulp": lambda one: None if one.max_ulp is None else float(one.max_ulp),
        "cosine": lambda one: one.cosine,
    }

    def read(told: Callable[[ElementFigures], object]) -> Column:
        return mapped(column, lambda one: None if one is None else told(one))

    return {name: read(told) for name, told in of.items()}


def _split(text: str, *, digits: int) -> list[str] | None:
    return [text[start : start + digits] for start in range(0, len(text), digits)] or None


def _num_regions(of: Summary) -> int:
    return len(of.xor) // XOR_DIGITS or len(of.regions) // STRONG_DIGITS


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
