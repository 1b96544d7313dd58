"""Reads calls.parquet back as rows, batch by batch: what was kept can be shown again without the runs (SU-7)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from paritrace.compare.result import Agreement
from paritrace.compare.rows import CallRow, SlotRow
from paritrace.errors import EvidenceError
from paritrace.evidence.gaps import CaptureGap, Gap

BATCH_ROWS = 4096


class KeptCalls:
    """The rows of a calls.parquet; may be read several times, a batch is in memory at a time.

    Figures of tensors compared element by element stay in the file: the rows have none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[CallRow]:
        """Yields every row in the order in which they were written.

        Raises:
            EvidenceError: Refused, `damaged_result`: the file cannot be read, or is not one of ours.
        """
        try:
            with pq.ParquetFile(self._path) as file:
                for batch in file.iter_batches(batch_size=BATCH_ROWS):
                    yield from map(_row, batch.to_pylist())
        except (OSError, ValueError, KeyError, msgspec.ValidationError) as error:
            raise EvidenceError(
                f"{self._path} cannot be read: {error}",
                code="damaged_result",
                fix="run paritrace compare again; results can always be made anew from their runs",
            ) from error


def _row(found: dict[str, Any]) -> CallRow:
    fields = {name: found.get(name) for name in CallRow.__struct_fields__ if name in found}
    fields["partner"] = -1 if found["partner"] is None else found["partner"]
    fields["slots"] = tuple(map(_slot, found["slots"] or ()))
    fields["scalars"] = found.get("scalars") or ""
    return msgspec.convert(fields, CallRow)


def _slot(found: dict[str, Any]) -> SlotRow:
    gap = found["bits_gap"]
    return SlotRow(
        direction=found["direction"],
        name=found["name"],
        dtype=found["dtype"],
        shape=tuple(found["shape"]),
        logical_nbytes=found["logical_nbytes"],
        bits=found["bits"] if gap is None else Gap(CaptureGap(gap)),
        xor="".join(found["xor"] or ()),
        regions="".join(found["region_bits"] or ()),
        elements=found["elements"] or "",
        agreement=None if found["agreement"] is None else Agreement(found["agreement"]),
        strides=tuple(found["strides"] or ()),
        semantics=found["semantics"] or "",
    )
