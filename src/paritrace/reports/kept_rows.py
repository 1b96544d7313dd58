"""The calls of a kept comparison, read from calls.parquet in bounded memory; may be read several times (SU-7)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from paritrace.compare.rows import CallRow, SlotRow
from paritrace.errors import EvidenceError
from paritrace.evidence.gaps import CaptureGap, Gap

BATCH_ROWS = 4096
KNOWN_FROM_0 = ("partner", "start_ns", "duration_ns")  # null in the table, -1 in a row
_SLOT_FIELDS = (
    "direction",
    "name",
    "dtype",
    "shape",
    "logical_nbytes",
    "elements",
    "agreement",
    "strides",
    "semantics",
)


class KeptRows:
    """Rows as the comparison wrote them. What is stated of single elements is in the table alone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[CallRow]:
        try:
            with pq.ParquetFile(self._path) as file:
                for batch in file.iter_batches(batch_size=BATCH_ROWS):
                    yield from map(_row, batch.to_pylist())
        except (OSError, ValueError, msgspec.ValidationError) as error:
            raise EvidenceError(
                f"{self._path} cannot be read: {error}",
                code="damaged_result",
                fix="run paritrace compare again without --format, so that calls.parquet is kept",
            ) from error


def _row(found: Mapping[str, Any]) -> CallRow:
    known = {name: value for name, value in found.items() if name in CallRow.__struct_fields__ and value is not None}
    known["slots"] = tuple(map(_slot, found["slots"] or ()))
    for name in KNOWN_FROM_0:
        known.setdefault(name, -1)
    return msgspec.convert(known, CallRow)


def _slot(found: Mapping[str, Any]) -> SlotRow:
    known = {name: found[name] for name in _SLOT_FIELDS if found.get(name) is not None}
    gap = found["bits_gap"]
    bits = found["bits"] if gap is None else Gap(CaptureGap(gap))
    joined = {"xor": "".join(found["xor"] or ()), "regions": "".join(found["region_bits"] or ())}
    return msgspec.convert(known | joined | {"bits": bits}, SlotRow)
