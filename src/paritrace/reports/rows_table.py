"""rows.parquet: every row of every token of both sides with its counterpart and its error, output by output (CP-27)."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paritrace.compare.token_rows import ComparedCell, TokenRowsCompared
from paritrace.compare.token_rows_align import Column
from paritrace.compare.token_rows_judge import RowStatus
from paritrace.compare.token_rows_load import Cell, Whole
from paritrace.reports.parquet import Sink, Writable

_WORD = pa.dictionary(pa.int32(), pa.string())
_OF_SIDES = (
    ("rank", pa.int32()),
    ("record_id", pa.int64()),
    ("row", pa.int64()),
    ("microbatch", pa.int32()),
    ("bits", pa.string()),
    ("norm", pa.float64()),
)
SCHEMA = pa.schema(
    [
        ("step", pa.int64()),
        ("output", _WORD),
        ("sample", _WORD),
        ("position", pa.int64()),
        ("status", _WORD),
        ("error", pa.float64()),
        ("norm_ratio", pa.float64()),
        ("ratio", pa.float64()),
        *((f"{side}_{name}", kind) for side in ("baseline", "candidate") for name, kind in _OF_SIDES),
    ]
)
STATUSES = {
    RowStatus.AGREES: "ok",
    RowStatus.DIFFERS: "different",
    RowStatus.AFTER_CHOICE: "after_choice",
    RowStatus.SEMANTICS: "incomparable_semantics",
    RowStatus.LENGTH: "incomparable_length",
    RowStatus.DTYPE: "incomparable_dtype",
}


def write_rows(compared: TokenRowsCompared, /, sink: Sink) -> int:
    """Write all rows as Parquet, one output of one step at a time; returns how many there were."""
    total = 0
    with pq.ParquetWriter(pa.PythonFile(Writable(sink), mode="w"), SCHEMA, compression="zstd") as writer:
        for columns in _batches(compared):
            batch = pa.record_batch([pa.array(columns[field.name], type=field.type) for field in SCHEMA], schema=SCHEMA)
            writer.write_batch(batch)
            total += batch.num_rows
    return total


def _batches(compared: TokenRowsCompared) -> Iterator[dict[str, Any]]:
    for one in compared.cells:
        yield _paired(compared, one)
        for side, column, keys in (
            ("baseline", one.ours, one.pairs.only_ours),
            ("candidate", one.theirs, one.pairs.only_theirs),
        ):
            yield _alone(compared, one.cell, column, side, keys, "unaligned")
        for side, column in (("baseline", one.ours), ("candidate", one.theirs)):
            yield _alone(compared, one.cell, column, side, one.pairs.ambiguous, "undetermined")
    for side, columns in zip(("baseline", "candidate"), compared.alone, strict=True):
        for cell, column in columns.items():
            yield _alone(compared, cell, column, side, column.keys, "unaligned")


def _paired(compared: TokenRowsCompared, one: ComparedCell) -> dict[str, Any]:
    num = one.pairs.keys.size
    ratios = [None if (told := one.excesses.get(place)) is None else told.ratio for place in range(num)]
    found = _places(compared, one.cell, one.pairs.keys)
    found["status"] = [STATUSES[RowStatus(status)] for status in one.judged.status.tolist()]
    found |= {"error": _known(one.judged.errors), "norm_ratio": _known(one.judged.norms), "ratio": ratios}
    return found | _side("baseline", one.ours, one.pairs.ours) | _side("candidate", one.theirs, one.pairs.theirs)


def _alone(
    compared: TokenRowsCompared, cell: Cell, column: Column, side: str, keys: Whole, status: str
) -> dict[str, Any]:
    other = "candidate" if side == "baseline" else "baseline"
    found = _places(compared, cell, keys)
    nothing = [None] * keys.size
    found |= {"status": [status] * keys.size, "error": nothing, "norm_ratio": nothing, "ratio": nothing}
    found |= {f"{other}_{name}": nothing for name, _ in _OF_SIDES}
    return found | _side(side, column, np.searchsorted(column.keys, keys).astype(np.int64))


def _places(compared: TokenRowsCompared, cell: Cell, keys: Whole) -> dict[str, Any]:
    named = [compared.samples.of_key(key) for key in keys.tolist()]
    return {
        "step": [cell[0]] * keys.size,
        "output": [cell[1]] * keys.size,
        "sample": [sample for sample, _ in named],
        "position": [position for _, position in named],
    }


def _side(side: str, column: Column, rows: Whole) -> dict[str, Any]:
    parts = [column.parts[part] for part in column.part[rows].tolist()]
    return {
        f"{side}_rank": [part.rank for part in parts],
        f"{side}_record_id": [part.call if part.call >= 0 else None for part in parts],
        f"{side}_row": [int(part.rows[at]) for part, at in zip(parts, column.at[rows].tolist(), strict=True)],
        f"{side}_microbatch": [part.microbatch for part in parts],
        f"{side}_bits": [f"{bits:016x}" for bits in column.bits[rows].tolist()],
        f"{side}_norm": _known(column.norms[rows]),
    }


def _known(values: Any) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
