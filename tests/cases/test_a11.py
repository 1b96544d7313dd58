"""A-11: quantities that are declared to mean different things are not compared."""

from pathlib import Path

import numpy as np
import pytest

from paritrace.compare.result import Agreement, Status
from paritrace.compare.slots import Incomparable, judge
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
