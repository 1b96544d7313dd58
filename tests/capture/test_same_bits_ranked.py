"""Two gloo ranks: the same bits and calls with and without capture, and no stale fingerprint (CA-14, CA-32, CA-34)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import warm
from benchmarks.same_bits.ranked import Training, measured, unequal
from benchmarks.same_bits.ranked_workloads import ON_ANY_THREAD, RANKED

PARTS = 3  # so that they run side by side; each starts its ranks once


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_training_on_two_ranks_is_undisturbed_and_no_reuse_is_stale(part: int, tmp_path: Path) -> None:
    names = list(RANKED)[part::PARTS]
    found = dict(measured(names, tmp_path, python=warm.python()))
    assert list(found) == names
    assert only(found, lambda training: training.errors) == {}
    assert only(found, Training.differing) == {}
    assert only(found, Training.other_calls) == {}
    assert only(found, lambda training: training.stale) == {}
    assert only(found, lambda training: not training.reused) == {}
    assert only(found, lambda training: training.gaps) == {}


def only(found: dict[str, Training], fault: Callable[[Training], object]) -> dict[str, object]:
    return {name: said for name, training in found.items() if (said := fault(training))}


def test_a_rank_that_differs_or_was_not_run_is_named() -> None:
    seen = {(0, "bare"): "a", (1, "bare"): "b", (0, "op"): "a", (1, "op"): "b", (0, "module"): "a", (1, "module"): "x"}
    assert unequal(seen, ("op", "module", "digest")) == ["module", "digest"]
    assert unequal({(0, "bare"): "a", (0, "op"): "a"}, ("op",)) == ["op"]


def test_trainings_with_operators_on_any_thread_exist() -> None:
    assert set(ON_ANY_THREAD) <= set(RANKED)
