"""A capture that is killed at any moment reads as far as it was written (EV-17, CA-4, P4)."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.evidence.calls import Call, Function, JournalHeader, Scope, Site, StepMark
from paritrace.evidence.codec import Record
from paritrace.evidence.journal import Loss
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.reading import open_run
from paritrace.runs.verify import Finding, verify
from tests.cases.captures import DEADLINE_SECONDS, run_python, write_script

# One process begins many captures, so that a kill costs no start of torch: it forks before torch has threads.
MANY = """
import gc, os, sys, time
from pathlib import Path
import torch
import paritrace

place = Path(sys.argv[1])


def work(number):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with paritrace.trace(place / f"run-{number}", level=("module", "op"), steps=(0, 1000), diff=False):
        step = 0
        while True:
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1


torch.set_num_threads(1)
with paritrace.trace(place / "first", level=("module", "op"), diff=False):
    torch.nn.Linear(8, 8)(torch.randn(4, 8)).sum().backward()  # what is loaded once is loaded here
gc.freeze()  # a capture that begins looks through what was made since
for number in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        work(number)
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()
    os.waitpid(child, 0)
"""
KILLS = 24
LONGEST_SECONDS = 0.4


def until(moment: float) -> None:
    while time.monotonic() < moment:
        os.sched_yield()


def until_it_writes(journal: Path, *, at_most_seconds: float) -> None:
    deadline = time.monotonic() + at_most_seconds
    while time.monotonic() < deadline:
        if journal.exists() and journal.stat().st_size > 0:
            return
        os.sched_yield()


def check_what_was_flushed(run_dir: Path) -> int:
    """Everything but a torn last line reads; every definition stands before its use; returns the number of calls."""
    with open_run(run_dir) as run:
        (session,) = run.sessions
        assert session.seen.words == "interrupted; cause unknown"
        assert session.status is SessionStatus.INTERRUPTED
        assert verify(run).verdict in (Finding.INTACT, Finding.NOT_CHECKED)
        items = list(run.records(session.session_id))
    lost = [item for item in items if isinstance(item, Loss)]
    assert len(lost) <= 1
    assert not lost or lost[0] is items[-1]
    found: list[Record] = [item for item in items if not isinstance(item, Loss)]
    assert not found or isinstance(found[0], JournalHeader)
    defined: dict[type, set[int]] = {Function: set(), Site: set(), Scope: {0}}
    calls = 0
    for record in found:
        if isinstance(record, (Function, Site, Scope)):
            defined[type(record)].add(record.id)
        elif isinstance(record, Call):
            calls += 1
            assert record.function in defined[Function]
            assert {record.site, record.workload_site} <= defined[Site]
            assert record.scope in defined[Scope]
    steps = [record.step for record in found if isinstance(record, StepMark)]
    assert steps == list(range(len(steps)))
    return calls


@pytest.mark.slow
def test_kill_nine_at_many_moments(tmp_path: Path) -> None:
    script = write_script(tmp_path / "many.py", MANY)
    moments = random.Random(5)
    arguments = [warm.python(), str(script), str(tmp_path), str(KILLS)]
    begun = []
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, env=warm.environment(), stdin=pipe, stdout=pipe, text=True) as many:
        assert many.stdout is not None
        assert many.stdin is not None
        for number in range(KILLS):
            child = int(many.stdout.readline())
            in_the_beginning = number % 4 == 0
            journal = tmp_path / f"run-{number}" / "sessions" / "rank-0" / "calls.jsonl"
            until_it_writes(journal, at_most_seconds=0.2 if in_the_beginning else 60.0)
            until(time.monotonic() + moments.uniform(0.0, 0.02 if in_the_beginning else LONGEST_SECONDS))
            os.kill(child, signal.SIGKILL)
            begun.append(tmp_path / f"run-{number}")
            many.stdin.write("\n")
            many.stdin.flush()
        many.communicate(timeout=DEADLINE_SECONDS)
    runs = [run for run in begun if (run / "run.json").exists()]
    calls = [check_what_was_flushed(run) for run in runs]
    assert sum(number > 0 for number in calls) >= KILLS // 4, "kills in the middle of the training are the case"
    for run in begun:
        assert run in runs or not any(path.is_file() for path in run.rglob("*") if not path.name.startswith("."))


KILLED_AT = """
import os, signal
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(0)
for step in range(6):
    loss = model(torch.randn(2, 4)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_killed_run_is_shown_checked_and_compared(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", KILLED_AT)
    for name in ("a", "b"):
        command = ("-m", "paritrace", "run", "-o", str(tmp_path / name), "--level", "op", "--no-diff", str(script))
        done = run_python(*command, directory=tmp_path)
        assert done.status == -signal.SIGKILL
    assert check_what_was_flushed(tmp_path / "a") > 0
    shown = run_python("-m", "paritrace", "runs", "show", str(tmp_path / "a"), directory=tmp_path)
    assert (shown.status, "interrupted; cause unknown" in shown.stdout) == (0, True)
    checked = run_python("-m", "paritrace", "check", str(tmp_path / "a"), directory=tmp_path)
    assert checked.status == 0, checked.stderr
    assert "interrupted" in checked.stdout
    compared = run_python("-m", "paritrace", "compare", str(tmp_path / "a"), str(tmp_path / "b"), directory=tmp_path)
    assert compared.status == 0, compared.stderr
    assert "interrupted" in compared.stdout
    with open_run(tmp_path / "a") as run:
        site = next(item for item in run.records("rank-0") if isinstance(item, Site) and item.file == "<main>")
        assert isinstance(site.digest, str)
        assert run.source(site.digest) == KILLED_AT.lstrip("\n") or run.source(site.digest) == KILLED_AT
