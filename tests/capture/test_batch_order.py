"""The batch digest sees the order of a batch's elements, which sums of elements do not (CA-29, CP-25)."""

from pathlib import Path

import pytest
import torch

import paritrace
from paritrace.compare.checks import check
from paritrace.compare.checks_result import Outcome
from paritrace.compare.engine import compare
from paritrace.compare.result import Mark
from paritrace.runs.reading import open_run

ROWS = torch.arange(12.0).reshape(4, 3)


def capture(run: Path, *batches: torch.Tensor) -> Path:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with paritrace.trace(run, level="digest", diff=False):
        for batch in batches:
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return run


def repeated(run: Path) -> Outcome:
    (found,) = (i for i in check(open_run(run)).invariants if i.id == "batches.not_repeated")
    return found.status


def test_ca29_swapped_rows_are_another_batch(tmp_path: Path) -> None:
    a = capture(tmp_path / "a", ROWS, ROWS + 1)
    b = capture(tmp_path / "b", ROWS, (ROWS + 1).flip(0))
    result = compare(open_run(a), open_run(b)).result
    assert [(state.step, state.group, state.name) for state in result.outside] == [(1, "batch", "args[0]")]
    assert result.ladder["data"] is Mark.BEYOND
    assert result.ladder_step == 1


def test_ca29_equal_batches_agree(tmp_path: Path) -> None:
    a, b = (open_run(capture(tmp_path / name, ROWS, ROWS + 1)) for name in "ab")
    result = compare(a, b).result
    assert (result.outside, result.ladder["data"]) == ((), Mark.AGREES)


@pytest.mark.parametrize(
    ("second", "status"),
    [
        pytest.param(ROWS, Outcome.FAIL, id="again"),
        pytest.param(ROWS.flip(0), Outcome.PASS, id="other order"),
        pytest.param(ROWS + 1, Outcome.PASS, id="other"),
    ],
)
def test_cp25_a_batch_in_another_order_is_no_repeat(tmp_path: Path, second: torch.Tensor, status: Outcome) -> None:
    assert repeated(capture(tmp_path / "run", ROWS, second)) is status
