"""A-13: the loss agrees to every digit, the gradient norm does not: the step is told figure by figure."""

from pathlib import Path

import numpy as np

from paritrace.compare.result import Mark
from paritrace.testing.tables import RunTable
from tests.compare.runs import compared


def run(*norms: float) -> RunTable:
    table = RunTable()
    for norm in norms:
        table.loss(1.4401)
        table.end_step(grad_norm=norm)
    return table


def test_the_gradient_norm_is_the_first_observed_difference(tmp_path: Path) -> None:
    result = compared(tmp_path, run(4.74, 4.74), run(4.74, 1.63)).result
    first = result.first_difference
    assert first is not None
    assert (first.step, first.slot, first.level) == (1, "grad_norm", "digest")
    assert (result.ladder["loss"], result.ladder["grad norm"]) == (Mark.AGREES, Mark.BEYOND)
    assert "grad_norm" in result.findings[0].sentence


def with_gradients(*names: str, norm: float) -> RunTable:
    table = RunTable()
    table.loss(1.4401)
    table.state("gradient", {name: np.ones(4, np.float32) for name in names}, moment="grads")
    table.end_step(grad_norm=norm)
    return table


def test_norms_over_unlike_gradients_are_not_compared(tmp_path: Path) -> None:
    result = compared(tmp_path, with_gradients("up", "down", norm=2.8), with_gradients("up", norm=2.0)).result
    assert result.ladder["grad norm"] is Mark.UNDETERMINED, "a sum over one parameter less is another sum"
    assert result.first_difference is None
    alike = compared(tmp_path / "alike", with_gradients("up", norm=2.8), with_gradients("up", norm=2.0)).result
    assert alike.ladder["grad norm"] is Mark.BEYOND
