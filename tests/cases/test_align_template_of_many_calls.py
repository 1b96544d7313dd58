"""A template of a kept comparison with more calls than one group of rows holds: each group has words of its own."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paritrace.compare.rows import Side
from paritrace.reports.calls_table import CallsTable


def test_cp14_sessions_are_found_whatever_group_of_rows_names_them(tmp_path: Path) -> None:
    word = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("side", word), ("rank", pa.int32()), ("session_id", word)])
    sessions = [("baseline", 0, "s-a"), ("baseline", 1, "s-b"), ("candidate", 0, "s-c")]
    with pq.ParquetWriter(tmp_path / "calls.parquet", schema) as writer:
        for side, rank, session in sessions:
            columns = [pa.array([side] * 2, word), pa.array([rank] * 2, pa.int32()), pa.array([session] * 2, word)]
            writer.write_table(pa.table(columns, schema=schema))
    found = CallsTable(tmp_path / "calls.parquet").sessions()
    assert found == [(Side(side), rank, session) for side, rank, session in sessions]
