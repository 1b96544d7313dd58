"""A-15: a loss normalised per micro-batch and globally: two factors multiply, and neither is attributed."""

from pathlib import Path

import numpy as np
import pytest

from paritrace.compare.engine import compare
from paritrace.compare.result import Comparison
from paritrace.reports.first_screen import first_screen
from paritrace.runs.reading import open_run
from paritrace.testing.tables import RunTable

RANKS, MICROBATCHES, STEPS = 4, 2, 2


def losses() -> list[float]:
    """One for each rank and micro-batch of each step, as the baseline has them."""
    return [float(value) for value in np.random.default_rng(15).uniform(0.2, 0.4, RANKS * MICROBATCHES * STEPS)]


def run(place: Path, factor: float, *, jitter: float = 0.0) -> Path:
    """A training on four ranks with two micro-batches a step, whose losses are `factor` times those of the baseline."""
    values = losses()
    for rank in range(RANKS):
        table = RunTable()
        for step in range(STEPS):
            for microbatch in range(MICROBATCHES):
                table.microbatch = microbatch
                value = values[(step * RANKS + rank) * MICROBATCHES + microbatch]
                table.loss(value * factor * (1 + jitter * (rank + microbatch)))
            table.microbatch = 0
            table.end_step(grad_norm=0.7 * factor * (1 + step))
        table.write(place, rank=rank, world_size=RANKS)
    return place


def compared(tmp_path: Path, factor: float, *, jitter: float = 0.0) -> Comparison:
    a, b = run(tmp_path / "a", 1.0), run(tmp_path / "b", factor, jitter=jitter)
    return compare(open_run(a), open_run(b)).result


def test_a15_the_ratio_is_stated_with_its_factors_and_attributed_to_nothing(tmp_path: Path) -> None:
    comparison = compared(tmp_path, 8.0)
    loss, norm = comparison.ratios
    assert (loss.figure, loss.ratio, loss.larger) == ("loss", 8, "candidate")
    assert loss.values == loss.of_values == RANKS * MICROBATCHES * STEPS
    assert loss.text == "ratio 8 = 4 x 2 observed (4 ranks, 2 micro-batches); no attribution"
    assert (norm.figure, norm.ratio, norm.values) == ("grad_norm", 8, RANKS * STEPS)
    assert "ratio 8 = 4 x 2 observed" in first_screen(comparison)


@pytest.mark.parametrize(
    ("factor", "text", "larger"),
    [
        (4.0, "ratio 4 observed (4 ranks); no attribution", "candidate"),
        (2.0, "ratio 2 observed (2 micro-batches); no attribution", "candidate"),
        (0.25, "ratio 4 observed (4 ranks); no attribution", "baseline"),
        (3.0, "ratio 3 observed; no attribution", "candidate"),
    ],
)
def test_a15_half_a_fix_leaves_a_ratio_that_is_said(tmp_path: Path, factor: float, text: str, larger: str) -> None:
    """A curve that looks closer is no equivalence."""
    fact = compared(tmp_path, factor).ratios[0]
    assert (fact.text, fact.larger) == (text, larger)


@pytest.mark.parametrize(("factor", "jitter"), [(1.0, 0.0), (2.5, 0.0), (8.0, 0.01)])
def test_a15_what_is_no_constant_whole_number_is_not_said(tmp_path: Path, factor: float, jitter: float) -> None:
    figures = {fact.figure for fact in compared(tmp_path, factor, jitter=jitter).ratios}
    assert figures == ({"grad_norm"} if jitter else set())
