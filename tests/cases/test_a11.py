"""A-11: quantities that are declared to mean different things are not compared."""

from pathlib import Path

import numpy as np
import pytest
import torch

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.result import Agreement, Status
from paritrace.compare.slots import Incomparable, judge
from paritrace.reports.first_screen import first_screen
from paritrace.runs.reading import open_run
from paritrace.testing.tables import Array, RunTable, Value
from tests.compare.runs import compared
from tests.compare.slots_pairs import pair

RAW = np.array([-0.313, -1.313], dtype=np.float32)
TEMPERED = np.array([-0.173, -1.840], dtype=np.float32)


@pytest.mark.parametrize("theirs", [RAW, TEMPERED])
def test_unlike_semantics_are_incomparable_even_with_equal_bits(
    theirs: Array,
) -> None:
    found = judge(pair(RAW, theirs, semantics=("raw_logprobs", "after_temperature")))
    assert (found.agreement, found.reason) == (Agreement.NOT_COMPARABLE, Incomparable.SEMANTICS)


def test_a_call_with_unlike_semantics_is_incomparable_in_the_result(tmp_path: Path) -> None:
    tables = []
    for array, meaning in ((RAW, "raw_logprobs"), (TEMPERED, "after_temperature")):
        table = RunTable()
        table.op("log_softmax", out=Value(array, semantics=meaning))
        tables.append(table)
    found = compared(tmp_path, *tables)
    assert [row.status for row in found.rows] == [Status.INCOMPARABLE] * 2
    assert found.result.first_difference is None


def test_log_probabilities_before_and_after_temperature_are_not_compared_row_by_row(tmp_path: Path) -> None:
    """The case's own numbers: logits [1, 0], T = 0.6: -0.313 against -0.173."""
    for name, temperature, tag in (("engine", 1.0, "raw_logprobs"), ("trainer", 0.6, "after_temperature")):
        with paritrace.trace(tmp_path / name):
            logprobs = (torch.tensor([[1.0, 0.0]]) / temperature).log_softmax(-1)[:, :1]
            paritrace.rows(["prompt"], positions=[[0]]).observe("logprobs", logprobs, semantics=tag)
    with open_run(tmp_path / "engine") as ours, open_run(tmp_path / "trainer") as theirs:
        found = compare(ours, theirs).result
    told = found.token_rows
    assert told is not None
    assert told.not_comparable == {"semantics": 1}
    assert told.first is told.largest is None
    assert "1 not comparable (semantics)" in first_screen(found)
