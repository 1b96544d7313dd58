"""However a process with a black box ends, what it held is written, or the run says that it is lost (CA-36, P6)."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.capture.session import DRAIN_SECONDS
from paritrace.capture.termination import STUCK_SECONDS
from paritrace.evidence.blackbox import Cause
from tests.capture.black_boxes import Seen, seen_in
from tests.cases.captures import DEADLINE_SECONDS, Ended, run_bare, run_python, write_script

pytestmark = pytest.mark.slow

TRAINING = """
import ctypes, os, signal, sys, threading
import torch

how = sys.argv[1]
if how == "own":
    def bye(number, frame):
        print("bye", number, signal.getsignal(signal.SIGTERM) is bye, flush=True)
        sys.exit(7)
    print(signal.signal(signal.SIGTERM, bye) is signal.SIG_DFL)
elif how == "ignored":
    print(signal.signal(signal.SIGTERM, signal.SIG_IGN) is signal.SIG_DFL)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    loss = model(torch.randn(4, 6)).square().mean()
    if step == 25:
        if how in ("own", "default", "ignored"):
            os.kill(os.getpid(), signal.SIGTERM)
        elif how == "killed":
            print("25", os.getpid(), flush=True)
            sys.stdin.read()
        elif how == "stuck":
            lock, libc = ctypes.create_string_buffer(64), ctypes.CDLL(None)
            print("25", os.getpid(), flush=True)
            libc.pthread_mutex_lock(lock)
            libc.pthread_mutex_lock(lock)
        elif how == "raises":
            raise RuntimeError("a secret")
        elif how == "exits":
            sys.exit(3)
        elif how == "forks":
            child = os.fork()
            if child == 0:
                os.kill(os.getpid(), signal.SIGTERM)
                os._exit(9)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex(), flush=True)
"""
KEPT = tuple(step for step in range(6, 26) if step not in (8, 16))  # the others have windows of level op


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_script(tmp_path_factory.mktemp("script") / "train.py", TRAINING)


def captured(script: Path, run_dir: Path, how: str) -> Ended:
    command = ("-m", "paritrace", "run", "-o", str(run_dir), "--black-box", "--no-diff", str(script), how)
    return run_python(*command, directory=script.parent)


def kept_at_step_25(seen: Seen, cause: Cause, detail: str) -> None:
    trigger = seen.triggers[0]
    assert (trigger.cause, trigger.detail, trigger.step) == (cause, detail, 25)
    assert trigger.steps == KEPT
    assert seen.losses == []


@pytest.fixture(scope="module")
def losses(script: Path) -> list[str]:
    """What the workload prints without paritrace when nothing happens to it."""
    bare = run_bare(script, "nothing")
    assert bare.status == 0
    return bare.stdout.splitlines()


@pytest.mark.parametrize(
    ("how", "status", "said", "cause", "detail"),
    [
        ("default", -signal.SIGTERM, ([], []), Cause.SIGTERM, ""),
        ("own", 7, (["True"], ["bye 15 True"]), Cause.SIGTERM, ""),
        ("raises", 1, ([], []), Cause.CRASH, "RuntimeError"),
        ("exits", 3, ([], []), Cause.CRASH, "exit status 3"),
    ],
)
def test_an_early_end_writes_the_box_and_is_the_workloads_own(
    script: Path,
    losses: list[str],
    tmp_path: Path,
    how: str,
    status: int,
    said: tuple[list[str], list[str]],
    cause: Cause,
    detail: str,
) -> None:
    done = captured(script, tmp_path / "run", how)
    assert (done.status, done.stdout.splitlines()) == (status, [*said[0], *losses[:25], *said[1]])
    kept_at_step_25(seen_in(tmp_path / "run"), cause, detail)
    journal = (tmp_path / "run" / "sessions" / "rank-0" / "calls.jsonl").read_bytes()
    assert b"a secret" not in journal


@pytest.mark.parametrize(("how", "said"), [("ignored", (0, "True")), ("forks", (25, str(-signal.SIGTERM)))])
def test_what_ends_nothing_writes_nothing(
    script: Path, losses: list[str], tmp_path: Path, how: str, said: tuple[int, str]
) -> None:
    done = captured(script, tmp_path / "run", how)
    place, word = said
    assert (done.status, done.stdout.splitlines()) == (0, [*losses[:place], word, *losses[place:]])
    assert seen_in(tmp_path / "run").triggers == []


def begun(script: Path, run_dir: Path, how: str) -> tuple[subprocess.Popen[str], int]:
    """A captured program that has come to step 25 and goes no further: the interpreter started for it, its own id."""
    command = [warm.python(), "-m", "paritrace", "run", "-o", str(run_dir), "--black-box", "--no-diff"]
    process = subprocess.Popen(
        [*command, str(script), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=warm.environment(),
    )
    assert process.stdout is not None
    while (words := process.stdout.readline().split())[:1] != ["25"]:
        assert process.poll() is None
    return process, int(words[1])


def test_a_main_thread_that_is_stuck_in_a_call_ends_all_the_same(script: Path, tmp_path: Path) -> None:
    process, pid = begun(script, tmp_path / "run", "stuck")
    with process:
        os.kill(pid, signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == -signal.SIGTERM
    assert STUCK_SECONDS + DRAIN_SECONDS < 30, "launchers wait 30 s before they kill"
    kept_at_step_25(seen_in(tmp_path / "run"), Cause.SIGTERM, "")


def test_a_killed_process_loses_its_box_and_the_run_says_so(script: Path, tmp_path: Path) -> None:
    process, pid = begun(script, tmp_path / "run", "killed")
    with process:
        os.kill(pid, signal.SIGKILL)
        assert process.wait(DEADLINE_SECONDS) == -signal.SIGKILL
    assert seen_in(tmp_path / "run").triggers == []
    for command in ("check", "runs show"):
        told = run_python("-m", "paritrace", *command.split(), str(tmp_path / "run"), directory=tmp_path)
        assert "what the black box held by then is not in the run" in " ".join(told.stdout.split()), told.stdout


LIMITED = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, 130_000))
runpy.run_module("paritrace", run_name="__main__", alter_sys=True)
"""


def test_a_disk_that_fills_while_the_box_is_written_disturbs_nothing(
    script: Path, losses: list[str], tmp_path: Path
) -> None:
    capture = ["run", "-o", str(tmp_path / "run"), "--black-box", "--no-diff"]
    done = subprocess.run(
        [warm.python(), "-c", LIMITED, *capture, str(script), "exits"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
        env=warm.environment(),
    )
    assert (done.returncode, done.stdout.splitlines()) == (3, losses[:25])
    assert "the run is incomplete" in done.stderr
    assert "Traceback" not in done.stderr
    seen = seen_in(tmp_path / "run")
    assert len(seen.triggers) == 1
    assert seen.num_bytes <= 130_000
