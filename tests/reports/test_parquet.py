"""calls.parquet: what goes in comes out, whatever the batch; fingerprints carry scheme, regions and ranges (CP-24)."""

from io import BytesIO
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from paritrace.compare.call_blocks import Coded, block_of
from paritrace.compare.rows import CallRow, Side
from paritrace.reports import parquet
from tests.reports import call_rows

SCHEMES = {"bits": "xxh3-64", "elements": "elements-u64"}


def written(rows: list[CallRow]) -> list[dict[str, Any]]:
    sink = BytesIO()
    assert parquet.write_calls(rows, sink, schemes=SCHEMES) == len(rows)
    sink.seek(0)
    table: list[dict[str, Any]] = pq.read_table(sink).to_pylist()
    return table


def test_cp16_every_call_of_both_sides_is_there_with_its_counterpart() -> None:
    table = written(call_rows.rows())
    found = [(row["side"], row["record_id"], row["partner"], row["status"], row["correspondence"]) for row in table]
    assert found[1] == ("baseline", 212, 214, "different", "paired")
    assert found[5] == ("candidate", 213, None, "unaligned", "undetermined")
    assert len(found) == 10
    assert table[1]["basis"] == "unique_key"
    assert table[1]["difference_class"] == "representable_in_narrower_dtype"
    assert table[1]["group"] == "originates"
    assert table[5]["reason"] == "unequal_between_anchors"
    assert table[5]["basis"] is None


def test_cp24_a_fingerprint_stands_beside_its_scheme_regions_and_byte_ranges() -> None:
    lean, full = written(call_rows.rows())[1]["slots"]
    assert full["bits"] == "00112233445566aa"
    assert full["bits_scheme"] == "xxh3-64"
    assert full["elements_scheme"] == "elements-u64"
    assert full["xor"] == ["00000001", "00000002", "00000003", "0000000f"]
    assert full["xor_scheme"] == "flat-u32-le-v1"
    assert full["regions"] == 4
    assert full["byte_ranges"] == [
        {"begin": 0, "end": 12},
        {"begin": 12, "end": 24},
        {"begin": 24, "end": 32},
        {"begin": 32, "end": 40},
    ]
    assert full["shape"] == [2, 5]
    assert full["agreement"] == "different"
    assert (lean["bits"], lean["bits_gap"], lean["bits_scheme"]) == (None, "uninitialised", None)
    assert (lean["xor"], lean["xor_scheme"], lean["regions"], lean["byte_ranges"]) == (None, None, None, None)


@pytest.mark.parametrize("batch", [1, 3, 10, 4096])
def test_rows_are_the_same_whatever_the_batch(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = written(call_rows.rows())
    monkeypatch.setattr(parquet, "BATCH_ROWS", batch)
    assert written(call_rows.rows()) == expected


def test_no_rows_make_a_readable_table() -> None:
    assert written([]) == []


def test_rows_are_taken_in_batches_never_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: by the time the n-th row is asked for, all but a batch of those before it were written."""
    monkeypatch.setattr(parquet, "BATCH_ROWS", 4)
    sink = BytesIO()
    sizes: list[int] = []

    def source() -> object:
        for number in range(40):
            sizes.append(sink.tell())
            yield replace(call_rows.row(Side.BASELINE, number), key=f"{number}" * 9)

    parquet.write_calls(source(), sink, schemes=SCHEMES)  # type: ignore[arg-type]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) >= 9


def test_same_rows_make_the_same_bytes() -> None:
    first, second = BytesIO(), BytesIO()
    parquet.write_calls(call_rows.rows(), first, schemes=SCHEMES)
    parquet.write_calls(call_rows.rows(), second, schemes=SCHEMES)
    assert first.getvalue() == second.getvalue()


def test_two_ids_of_one_word_are_one_word_of_the_table() -> None:
    rows = [call_rows.rows()[0]] * 3
    block = block_of(rows)
    words = Coded(np.array([1, 2, 0]), ("a", "b", "b"))
    block = type(block)(
        calls={**block.calls, "module": words}, first=block.first, slots=block.slots, summaries=block.summaries
    )
    coded_sink, plain_sink = BytesIO(), BytesIO()
    parquet.write_calls(list(block.rows()), plain_sink, schemes={})
    parquet.write_blocks([[block]], coded_sink, schemes={})
    assert coded_sink.getvalue() == plain_sink.getvalue()
    table: list[dict[str, Any]] = pq.read_table(coded_sink).to_pylist()
    assert [row["module"] for row in table] == ["b", "b", "a"]


@pytest.mark.parametrize("cut", [0, 1, 4, 10])
def test_where_blocks_are_cut_does_not_show(cut: int) -> None:
    rows: list[CallRow] = call_rows.rows()
    whole, parts = BytesIO(), BytesIO()
    parquet.write_blocks([[block_of(rows)]], whole, schemes={})
    parquet.write_blocks([[block_of(rows[:cut]), block_of(rows[cut:])]], parts, schemes={})
    assert parts.getvalue() == whole.getvalue()
