"""Two ranks of which one sees NaN: both keep the same steps, without a collective of ours (CA-36)."""

import subprocess
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.evidence.blackbox import Cause
from paritrace.evidence.calls import Level
from tests.capture.black_boxes import Seen, seen_in
from tests.cases.captures import DEADLINE_SECONDS, run_python, write_script

pytestmark = pytest.mark.slow

TRAINING = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 4))
probe = torch.nn.Tanh()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    batch = torch.randn(4, 6)
    loss = model(batch).square().mean()
    with torch.no_grad():  # nothing that the other rank could see
        probe(batch * float("nan") if (rank, step) == (1, 25) else batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""
LAST_20 = set(range(6, 26))
WINDOWS = {0, 1, 2, 4, 8, 16}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    script = write_script(folder / "train.py", TRAINING)
    launcher = [warm.python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "-m", "paritrace", "run", "-o", str(folder / "run"), "--black-box", "--no-diff", str(script)]
    done = subprocess.run(
        command,
        cwd=folder,
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def ranks(run_dir: Path) -> tuple[Seen, Seen]:
    return seen_in(run_dir, "rank-0"), seen_in(run_dir, "rank-1")


def test_the_rank_that_sees_it_writes_its_box_and_the_other_follows(ranks: tuple[Seen, Seen]) -> None:
    (heard,), (told,) = ranks[0].triggers, ranks[1].triggers
    assert (told.cause, told.step) == (Cause.NON_FINITE, 25)
    assert (heard.cause, heard.detail) == (Cause.OTHER_RANK, "triggers/rank-1.25.non_finite")
    assert heard.step in (25, 26), "DDP keeps the ranks within a step of each other"


def test_both_have_the_same_steps(ranks: tuple[Seen, Seen]) -> None:
    followed, first = ranks
    assert set(first.triggers[0].steps) == LAST_20
    assert set(followed.triggers[0].steps) >= LAST_20 - WINDOWS
    assert followed.steps[Level.MODULE] >= LAST_20
    assert first.steps[Level.MODULE] >= LAST_20


def test_one_of_two_data_parallel_ranks_records_operators(ranks: tuple[Seen, Seen], run_dir: Path) -> None:
    assert ranks[0].steps[Level.OP] == WINDOWS
    assert Level.OP not in ranks[1].steps
    assert [box.window_ranks for one in ranks for box in one.boxes] == [(0,), (0,)]
    told = run_python("-m", "paritrace", "check", str(run_dir), directory=run_dir)
    assert "on rank 0 of 2" in " ".join(told.stdout.split())


def test_a_comparison_with_itself_pairs_what_the_boxes_hold(run_dir: Path) -> None:
    done = run_python("-m", "paritrace", "compare", str(run_dir), str(run_dir), "--exit-code", directory=run_dir)
    text = " ".join(done.stdout.split())
    assert "No difference found on rank 0-1" in text, done.stdout
    assert "on rank 0 of 2" in text
