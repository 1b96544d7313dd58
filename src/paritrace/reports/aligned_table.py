"""calls.parquet of a reviewed comparison: the calls that a map names, and every row with what it changes (CP-22)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from paritrace.compare.alignment_apply import Change, Key
from paritrace.compare.alignment_facts import CallFacts, Wanted
from paritrace.compare.result import Agreement, Basis
from paritrace.compare.rows import Correspondence
from paritrace.errors import EvidenceError
from paritrace.reports.parquet import BATCH_ROWS, FIGURES, SCHEMA, Sink, Writable

AS_IT_WAS = ("status", "correspondence", "basis", "reason", "partner", "reordered", "difference_class", "group")
FACTS = tuple(name for name in CallFacts.__struct_fields__ if name != "scalars")
MOST_ID = 2**63 - 1  # a map may name any number; the table's column holds 64 bits
_SLOT_FACTS = ("direction", "name", "dtype", "shape", "logical_nbytes", "bits", "bits_scheme", "elements")
_MORE_SLOT_FACTS = ("elements_scheme", "xor", "strides", "semantics")


def calls_of(path: Path, wanted: Sequence[Wanted], /) -> list[CallFacts]:
    """Returns the calls that are named, and the partner of each.

    Raises:
        EvidenceError: Refused, `damaged_result`: not a table of calls.
    """
    named = _read(path, {(each.side, each.rank, each.record) for each in wanted})
    partners = {
        ("candidate" if call.side == "baseline" else "baseline", call.rank, call.partner)
        for call in named
        if call.partner is not None
    }
    known = {(call.side, call.rank, call.record_id) for call in named}
    return [*named, *_read(path, partners - known)]


def _read(path: Path, ids: set[tuple[str, int, int]]) -> list[CallFacts]:
    found: list[CallFacts] = []
    for side in sorted({side for side, _, _ in ids}):
        records = sorted({record for each, _, record in ids if each == side and 0 <= record <= MOST_ID})
        condition = (pc.field("side") == side) & pc.field("record_id").isin(records)
        rows = _rows(path, condition)
        found += [_facts(row) for row in rows if (side, row["rank"], row["record_id"]) in ids]
    return found


def _rows(path: Path, condition: Any) -> list[dict[str, Any]]:
    try:
        source = ds.dataset(path, format="parquet")
        columns = [name for name in (*FACTS, "scalars") if name in source.schema.names]
        return list(source.to_table(columns=columns, filter=condition).to_pylist())
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> EvidenceError:
    return EvidenceError(
        f"{path} cannot be read: {error}",
        code="damaged_result",
        fix="run paritrace compare again without --format, so that calls.parquet is kept",
    )


def _facts(row: dict[str, Any]) -> CallFacts:
    slots = [
        {name: slot[name] for name in (*_SLOT_FACTS, *_MORE_SLOT_FACTS) if name in slot}
        | {"has_strides": "strides" in slot}
        for slot in row["slots"] or ()
    ]
    return msgspec.convert(row | {"slots": slots}, CallFacts)


def write_aligned(source: Path, /, sink: Sink, *, changes: Mapping[Key, Change]) -> None:
    """Writes every row of the source with what the review changes, in the source's order and in bounded memory.

    All columns of the source stay. `validation` says what a person said; `source_…` hold what the source said.
    """
    with (
        pq.ParquetFile(source) as file,
        pq.ParquetWriter(pa.PythonFile(Writable(sink), mode="w"), SCHEMA_OF_ALIGNED, compression="zstd") as writer,
    ):
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            writer.write_table(_aligned(_extended(batch), changes))


SCHEMA_OF_ALIGNED = pa.schema([*SCHEMA, *(pa.field(f"source_{name}", SCHEMA.field(name).type) for name in AS_IT_WAS)])


def _extended(batch: Any) -> Any:
    """A batch of the source as one of the new table: what older tables lack is null."""
    arrays: list[Any] = []
    for field in SCHEMA_OF_ALIGNED:
        name = field.name.removeprefix("source_")
        if name in batch.schema.names:
            array = batch.column(name)
            arrays.append(array if array.type == field.type else pa.array(array.to_pylist(), type=field.type))
        else:
            arrays.append(pa.nulls(batch.num_rows, type=field.type))
    return pa.record_batch(arrays, schema=SCHEMA_OF_ALIGNED)


def _aligned(batch: Any, changes: Mapping[Key, Change]) -> Any:
    keys = zip(*(batch.column(name).to_pylist() for name in ("side", "rank", "record_id", "session_id")), strict=True)
    touched = [(place, changes[key]) for place, key in enumerate(keys) if key in changes]
    return pa.Table.from_batches(list(_pieces(batch, touched)), schema=SCHEMA_OF_ALIGNED).combine_chunks()


def _pieces(batch: Any, touched: Iterable[tuple[int, Change]]) -> Iterator[Any]:
    """The rows that stay as slices, those that change one by one."""
    done = 0
    for place, change in touched:
        yield batch.slice(done, place - done)
        (row,) = batch.slice(place, 1).to_pylist()
        yield pa.RecordBatch.from_pylist([row | _changed(row, change)], schema=SCHEMA_OF_ALIGNED)
        done = place + 1
    yield batch.slice(done)


def _changed(row: dict[str, Any], change: Change) -> dict[str, Any]:
    if change.stays:
        return {"validation": change.validation.value}
    paired = change.partner is not None
    return {
        "validation": change.validation.value,
        "status": change.status.value,
        "correspondence": (Correspondence.PAIRED if paired else Correspondence.UNDETERMINED).value,
        "basis": Basis.REVIEWED.value if paired else None,
        "reason": None if change.reason is None else change.reason.value,
        "partner": change.partner,
        "reordered": False,
        "difference_class": None if change.difference_class is None else change.difference_class.value,
        "group": None,
        "slots": [
            slot | dict.fromkeys(FIGURES) | {"agreement": _agreement(slot, change.slots)} for slot in row["slots"] or ()
        ],
    }


def _agreement(slot: dict[str, Any], found: Mapping[tuple[str, str], Agreement] | None) -> str | None:
    if found is None:
        return None
    return found.get((slot["direction"], slot["name"]), Agreement.NOT_COMPARABLE).value
