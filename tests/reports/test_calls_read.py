"""What calls.parquet holds comes back as the rows that were written, batch by batch (SU-7)."""

from pathlib import Path

import pytest

from paritrace.errors import EvidenceError
from paritrace.reports import calls_read, parquet
from paritrace.reports.calls_read import KeptCalls
from tests.reports import call_rows


@pytest.mark.parametrize("batch", [3, 4096])
def test_rows_come_back_as_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(calls_read, "BATCH_ROWS", batch)
    path = tmp_path / "calls.parquet"
    with path.open("wb") as sink:
        parquet.write_calls(call_rows.rows(), sink, schemes={"bits": "xxh3-64"})
    kept = KeptCalls(path)
    assert list(kept) == call_rows.rows()
    assert list(kept) == call_rows.rows()


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(EvidenceError) as refused:
        list(KeptCalls(path))
    assert refused.value.code == "damaged_result"
