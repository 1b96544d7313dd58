"""Blocks of columns and the rows made of them say the same (CP-16, CP-17)."""

import numpy as np

from paritrace.compare.call_blocks import block_of, coded, items, mapped
from tests.reports import call_rows


def test_rows_come_out_of_a_block_as_they_went_in() -> None:
    rows = call_rows.rows()
    assert list(block_of(rows).rows()) == rows


def test_a_block_without_rows_has_none() -> None:
    assert list(block_of([]).rows()) == []


def test_a_coded_column_asks_once_for_each_value() -> None:
    asked: list[int] = []

    def told(number: int) -> str:
        asked.append(number)
        return f"n{number}"

    column = coded(np.array([7, 3, 7, 7]), told)
    assert list(column) == ["n7", "n3", "n7", "n7"]
    assert sorted(asked) == [3, 7]
    assert list(items(mapped(column, len))) == [2, 2, 2, 2]
