"""The DDP example: a parameter left out of the reduction, named from one run alone and against a right one."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.compare.checks import check
from paritrace.compare.checks_result import Invariant, Outcome
from paritrace.compare.engine import compare
from paritrace.compare.result import CollectiveKind, Comparison
from paritrace.runs.reading import open_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp"
LEFT_OUT = "head.weight"
DEADLINE_SECONDS = 180
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("ddp")
    for name in ("good", "good2", "bad"):
        capture(place / name, *(("--leave-out", LEFT_OUT) if name == "bad" else ()))
    return {name: place / name for name in ("good", "good2", "bad")}


def capture(run: Path, *arguments: str) -> None:
    # Ranks of their own: a forked one now and then waits for ever in gloo's end, when its model is let go.
    torchrun = (warm.python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    inner = ("-m", "paritrace", "run", "-o", str(run), "--level", "module", "--level", "op", "--steps", "0:2")
    done = subprocess.run(
        [*torchrun, *inner, str(EXAMPLE / "train.py"), *arguments],
        env=warm.environment(PYTHON_EXEC=sys.executable),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def failing(run: Path) -> dict[str, Invariant]:
    return {found.id: found for found in check(open_run(run)).invariants if found.status is Outcome.FAIL}


def compared(runs: dict[str, Path], base: str, cand: str) -> Comparison:
    return compare(open_run(runs[base]), open_run(runs[cand])).result


def test_check_alone_names_gradient_then_weight(runs: dict[str, Path]) -> None:
    found = failing(runs["bad"])
    assert set(found) == {"replicas.gradients", "replicas.parameters", "replicas.optimizer_state"}
    assert (found["replicas.gradients"].step, found["replicas.parameters"].step) == (0, 1)
    for one in ("replicas.gradients", "replicas.parameters"):
        assert found[one].evidence.names == (LEFT_OUT,)


def test_check_of_the_right_run_finds_nothing(runs: dict[str, Path]) -> None:
    assert failing(runs["good"]) == {}


def test_compare_names_the_missing_reduction_on_both_ranks(runs: dict[str, Path]) -> None:
    result = compared(runs, "good", "bad")
    assert result.findings[0].sentence.startswith(
        f"In the candidate no all_reduce of group world contains the gradient of {LEFT_OUT} at step 0, ranks 0, 1"
    )
    (told,) = (one for one in result.collectives if one.kind is CollectiveKind.REDUCED)
    assert (told.parameters, told.ranks, told.group, told.complete) == ((LEFT_OUT,), (0, 1), "world", True)


def test_two_right_runs_claim_nothing(runs: dict[str, Path]) -> None:
    result = compared(runs, "good", "good2")
    assert (result.findings, result.origins, result.outside, result.collectives) == ((), (), (), ())
    assert result.counts.different == 0
    assert result.counts.undetermined_baseline == result.counts.undetermined_candidate == 0
