"""Grows a kept comparison to any number of calls: the rows it holds, again and again at later steps (PF-20, SU-12)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec.structs import replace

from paritrace.compare.result import Comparison
from paritrace.evidence.digests import sha256_of
from paritrace.files import LOCAL
from paritrace.reports.documents import comparison_document, decoded, encoded
from paritrace.reports.keeping import MANIFEST, NAMES
from paritrace.reports.manifest import ExportedFile, Manifest
from paritrace.reports.parquet import Writable

ROWS_OF_A_GROUP = 65_536
_compute: Any = pc  # its functions are made at run time


def grow(directory: Path, *, to: int) -> int:
    """Make calls.parquet of the kept comparison at `directory` hold at least `to` rows; return how many it holds.

    Each copy stands at later steps and has record ids of its own; partners and slots go with it. The counts of the
    document and the digests of the manifest say what is there afterwards. The runs are left as they are.
    """
    path = directory / NAMES["parquet"]
    table = pq.read_table(path)
    copies = -(-to // table.num_rows)
    with LOCAL.replacing(path) as sink:
        stream = pa.PythonFile(Writable(sink), mode="w")
        with pq.ParquetWriter(stream, table.schema, compression="zstd") as writer:
            for copy in _copies(table, copies):
                writer.write_table(copy, row_group_size=ROWS_OF_A_GROUP)
    restate(directory, copies=copies)
    return int(table.num_rows * copies)


def _copies(table: Any, number: int) -> Iterator[Any]:
    steps = 1 + _compute.max(table["step"]).as_py()
    ids = 1 + _compute.max(table["record_id"]).as_py()
    waiting: list[Any] = []
    for copy in range(number):
        waiting.append(_moved(table, steps=copy * steps, ids=copy * ids))
        if sum(one.num_rows for one in waiting) >= ROWS_OF_A_GROUP or copy == number - 1:
            yield pa.concat_tables(waiting)
            waiting = []


def _moved(table: Any, *, steps: int, ids: int) -> Any:
    for name, by in (("step", steps), ("record_id", ids), ("partner", ids)):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), _compute.add(table[name], by))
    return table


def restate(directory: Path, *, copies: int = 1) -> None:
    """Make document and manifest say what is there: counts so many times, digests anew."""
    document = directory / NAMES["json"]
    comparison = decoded(LOCAL.read(document), Comparison, name=str(document))
    counts = comparison.counts
    grown = {name: getattr(counts, name) * copies for name in counts.__struct_fields__}
    LOCAL.replace(document, comparison_document(replace(comparison, counts=replace(counts, **grown))))
    manifest = decoded(LOCAL.read(directory / MANIFEST), Manifest, name=MANIFEST)
    files = tuple(_stated(directory / one.path) for one in manifest.files)
    LOCAL.replace(directory / MANIFEST, encoded(replace(manifest, files=files)))


def _stated(path: Path) -> ExportedFile:
    digest = sha256_of(LOCAL.iter_chunks(path))
    return ExportedFile(path=path.name, size=digest.num_bytes, sha256=digest.sha256)
