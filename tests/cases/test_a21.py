"""A-21: equal final outputs beside differing intermediates are two statements, not one bit."""

from pathlib import Path

from paritrace.compare.result import Mark, Status
from paritrace.testing.tables import RunTable, batch
from tests.compare.runs import compared, numbers


def run(seed: int) -> RunTable:
    table = RunTable()
    hidden = table.op("layer", batch(numbers(1)), out=numbers(seed))
    table.op("argmax", hidden, out=numbers(9, 4))
    table.loss(0.5)
    return table


def test_outputs_agree_and_intermediates_differ(tmp_path: Path) -> None:
    found = compared(tmp_path, run(2), run(3))
    assert found.result.ladder["loss"] is Mark.AGREES
    assert found.result.ladder["forward"] is Mark.BEYOND
    assert found.result.first_difference is not None
    assert found.result.first_difference.function == "layer"
    last = [row for row in found.rows if row.function == "argmax"]
    assert {row.status for row in last} == {Status.DIFFERENT}  # its input differs
    assert {slot.agreement for row in last for slot in row.slots if slot.direction == "o"} == {"equal"}
