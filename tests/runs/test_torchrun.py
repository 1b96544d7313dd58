"""A real launcher: ranks, restarts, two agents, a rank that is killed (EV-13, CA-1, CA-3, CA-16)."""

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.compare.checks import check
from paritrace.compare.checks_result import Outcome
from paritrace.compare.engine import compare
from paritrace.reports.first_screen import first_screen
from paritrace.runs.attendance import in_words
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.launch import Launcher
from paritrace.runs.reading import Run, open_run
from paritrace.runs.verify import Finding, verify

pytest.importorskip("torch")

DEADLINE_SECONDS = 240
# Two steps of every rank; what a rank does between them is the argument `RANK:INCARNATION:ACT`.
TRAINING = """
import os, signal, sys
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.manual_seed(rank)
model = torch.nn.Linear(4, 4)
together = "exit" not in sys.argv  # in a group made anew after a restart gloo's ranks at times never find each other
if together:
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    model(torch.randn(2, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 1 and sys.argv[1:2] == [f"{rank}:{os.environ['TORCHELASTIC_RESTART_COUNT']}"]:
        if sys.argv[2] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(3)
if together:
    dist.destroy_process_group()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launched(
    folder: Path, run: str, *arguments: str, options: Sequence[str] = ("--standalone", "--nproc-per-node", "2")
) -> "subprocess.Popen[str]":
    """Start the training on two ranks through `--launcher`."""
    if not (folder / "train.py").exists():
        (folder / "train.py").write_text(TRAINING)
    launcher = " ".join([warm.python(), "-m", "torch.distributed.run", *options])
    return subprocess.Popen(
        [warm.python(), "-m", "paritrace", "run", "-o", run, "--launcher", launcher, "train.py", *arguments],
        cwd=folder,
        env=warm.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: "subprocess.Popen[str]") -> tuple[int, str]:
    try:
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        process.terminate()  # does nothing to one that has ended; what it started hears of it
    return process.returncode, errors


def sessions(run: Run) -> list[tuple[int, int]]:
    return [(view.rank, view.incarnation) for view in run.sessions]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one training: `whole`, `killed` (rank 1, in its second step) and `restarted` (rank 1 failed at first)."""
    made = tmp_path_factory.mktemp("torchrun")
    started = [
        launched(made, "whole"),
        launched(made, "killed", "1:0", "kill"),
        launched(
            made, "restarted", "1:0", "exit", options=("--standalone", "--nproc-per-node", "2", "--max-restarts", "1")
        ),
    ]
    statuses = [finished(process) for process in started]
    assert [status for status, _ in statuses] == [0, 1, 0], statuses
    return made


@pytest.mark.slow
def test_ranks_join_one_run_and_another_start_is_refused(folder: Path) -> None:
    with open_run(folder / "whole") as run:
        assert run.envelope.start.launcher is Launcher.TORCHRUN
        assert sessions(run) == [(0, 0), (1, 0)]
        assert run.attendance[0].complete
        assert verify(run).verdict is Finding.INTACT
        before = run.digest
    status, errors = finished(launched(folder, "whole"))
    assert status != 0
    assert "run_exists" in errors
    with open_run(folder / "whole") as run:
        assert run.digest == before


@pytest.mark.slow
def test_a_killed_rank_is_named_and_the_others_are_compared(folder: Path) -> None:
    with open_run(folder / "whole") as whole, open_run(folder / "killed") as killed:
        (one,) = killed.attendance
        assert 1 in one.without_receipt
        assert not one.num_absent
        words = next(in_words(one))
        assert words.endswith("left no receipt")
        items = {item.id: item for item in verify(killed).items}
        assert (items["ranks"].status, items["ranks"].detail) == (Finding.MISSING, words)
        outcomes = {i.id: i for i in check(killed).invariants if i.id == "evidence.ranks_present"}
        assert outcomes["evidence.ranks_present"].status is Outcome.FAIL
        assert outcomes["evidence.ranks_present"].evidence.facts == (words,)
        compared = compare(whole, killed).result
        assert compared.ranks_compared == (0, 1), "what the killed rank wrote is compared too"
        assert compared.coverage["candidate"].ranks == (one,)
        assert not compared.coverage["candidate"].complete
        assert f"candidate: {words}" in first_screen(compared)


@pytest.mark.slow
def test_a_restart_keeps_what_the_first_start_wrote_and_says_what_is_compared(folder: Path) -> None:
    with open_run(folder / "whole") as whole, open_run(folder / "restarted") as restarted:
        assert sessions(restarted) == [(0, 0), (1, 0), (0, 1), (1, 1)]
        first, second = restarted.attendance
        assert second.complete
        assert (first.num_absent, first.last) == (0, False)
        assert restarted.sessions[3].status is SessionStatus.COMPLETED
        counts = verify(restarted).counts
        assert counts["changed"] == counts["missing"] == 0
        assert restarted.journal("rank-1.restart-1") is not None
        compared = compare(whole, restarted).result
        assert compared.coverage["candidate"].not_compared == ("rank-0.restart-1", "rank-1.restart-1")
        assert "no such session: rank-0.restart-1, rank-1.restart-1" in first_screen(compared)
        again = compare(restarted, restarted).result
        assert again.coverage["candidate"].not_compared == ()
        assert again.findings == ()


@pytest.mark.slow
def test_the_ranks_of_two_agents_join_one_run(tmp_path: Path) -> None:
    """Two nodes' worth of ranks; how restarts of several agents join is shown in test_incarnations.py."""
    endpoint = f"127.0.0.1:{free_port()}"
    options = ("--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint)
    both = [launched(tmp_path, "run", options=(*options, "--rdzv-id", "job")) for _ in range(2)]
    ended = [finished(process) for process in both]
    assert [status for status, _ in ended] == [0, 0], ended
    with open_run(tmp_path / "run") as run:
        assert sessions(run) == [(0, 0), (1, 0)]
        assert run.attendance[0].complete
        assert len({view.row.metadata["agent"] for view in run.sessions}) == 2
