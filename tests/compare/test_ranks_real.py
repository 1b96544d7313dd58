"""Real trainings on two gloo ranks, captured once: identical ones claim nothing, each fault is named (CP-9, N-01)."""

import subprocess
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.compare.engine import compare
from paritrace.compare.result import Comparison, Mark
from paritrace.runs.reading import open_run
from tests.compare import ranked_job

pytestmark = pytest.mark.slow

DEADLINE_SECONDS = 300  # some thirty on two free cores
MAX_UNDETERMINED = 0.005  # of the calls of identical runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All run directories, by one launch of two ranks."""
    place = tmp_path_factory.mktemp("ranks")
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = subprocess.run(
        [warm.python(), *launch, ranked_job.__file__, str(place)],
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place


def compared(runs: Path, baseline: str, candidate: str) -> Comparison:
    return compare(open_run(runs / baseline), open_run(runs / candidate)).result


@pytest.mark.parametrize("wrap", ["ddp", "fsdp", "tensor_parallel"])
def test_identical_trainings_claim_nothing_and_pair_fully(runs: Path, wrap: str) -> None:
    result = compared(runs, f"{wrap}-1", f"{wrap}-2")
    assert result.ranks_compared == (0, 1)
    assert (result.findings, result.collectives, result.outside, result.first_difference) == ((), (), (), None)
    assert result.counts.different == 0
    assert result.counts.undetermined_baseline <= MAX_UNDETERMINED * result.counts.calls_baseline
    assert result.counts.undetermined_candidate <= MAX_UNDETERMINED * result.counts.calls_candidate
    assert Mark.BEYOND not in result.ladder.values()


def test_a_parameter_that_ddp_ignores_is_named_with_its_bucket_on_both_ranks(runs: Path) -> None:
    result = compared(runs, "ddp-1", "ignored")
    first = result.findings[0]
    assert first.sentence.startswith(
        "In the candidate no all_reduce of group world contains the gradient of head.weight at step 0, ranks 0, 1"
    )
    assert "all_reduce #" in first.place.cause
    assert (first.ranks, first.place.step, first.place.phase) == ((0, 1), 0, "backward")
    (told,) = result.collectives
    assert told.parameters == ("head.weight",)
    assert told.steps == tuple(range(ranked_job.STEPS))
    assert result.ladder["reduced grads"] is Mark.BEYOND


@pytest.mark.parametrize(
    ("baseline", "candidate", "words"),
    [
        ("plain", "missing", "Only the baseline runs all_reduce of group world at ranked_job.py:"),
        ("missing", "plain", "Only the candidate runs all_reduce of group world at ranked_job.py:"),
        ("plain", "doubled", "Only the candidate runs all_reduce of group world at ranked_job.py:"),
        ("plain", "max", "(reduce: max instead of sum)"),
        ("plain", "group", "rank 0: over ranks 0 instead of 0,1; rank 1: over ranks 1 instead of 0,1"),
    ],
)
def test_a_fault_in_a_loop_of_the_workloads_own_is_the_only_finding(
    runs: Path, baseline: str, candidate: str, words: str
) -> None:
    result = compared(runs, baseline, candidate)
    assert words in result.findings[0].sentence
    assert result.findings[0].ranks == (0, 1)
    assert result.findings[0].place.step == 0
    assert [first.rank for first in result.first_by_rank] == [0, 1]
    others = result.counts.different - 2 * (candidate in ("max", "group"))
    assert sum(finding.consequences for finding in result.findings) >= others // 2


@pytest.mark.parametrize("candidate", ["missing", "doubled"])
def test_the_gradient_of_a_one_sided_reduction_is_named(runs: Path, candidate: str) -> None:
    assert "(gradient of head.weight)" in compared(runs, "plain", candidate).findings[0].sentence
