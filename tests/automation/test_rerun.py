"""Re-running by the recorded request: the command, what is refused, and how it ends (CP-15, P5, P8)."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.automation.rerun import Rerun, command_of, require_run, require_same_sources, rerun
from paritrace.errors import EvidenceError, HostError, Outcome, RequestError
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.process.logged import run_logged
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.runs.request import encode_request, parse_request, request_of
from tests.automation.requests import request_for
from tests.runs.making import capture, request

TRAINING = """
import sys
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    model(torch.randn(2, 3)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print("arguments", sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TRAINING)
    return path


def test_the_command_has_other_capture_options_and_keeps_what_changes_the_run(script: Path) -> None:
    request = request_for(script, arguments=("--lr", "1"), launcher="torchrun --nproc-per-node 2", kept=("--eager",))
    command = command_of(request, output=script.parent / "again", options=("--level=op", "--steps=3:4"))
    assert command == (
        *(sys.executable, "-m", "paritrace", "run", f"--output={script.parent / 'again'}", "--eager"),
        *("--level=op", "--steps=3:4", "--launcher=torchrun --nproc-per-node 2", "train.py", "--lr", "1"),
    )


def test_what_is_not_known_is_to_be_given_by_hand(script: Path) -> None:
    masked = request_for(script, arguments=Gap(CaptureGap.REDACTED, "1 masked"))
    with pytest.raises(RequestError, match="1 masked") as refused:
        command_of(masked, output=script.parent / "again")
    assert refused.value.code == "arguments_unknown"
    unseen = request_for(script, launcher=Gap(CaptureGap.NOT_OBSERVED, "2 ranks, started by torchrun"))
    with pytest.raises(RequestError, match="2 ranks, started by torchrun") as refused:
        command_of(unseen, output=script.parent / "again")
    assert refused.value.code == "launcher_unknown"


def test_a_changed_source_is_refused_by_name_and_nothing_starts(script: Path) -> None:
    request = request_for(script)
    require_same_sources(request)
    script.write_text(TRAINING + "# changed\n")
    with pytest.raises(EvidenceError, match=r"train\.py has changed") as refused:
        rerun(request, output=script.parent / "again")
    assert refused.value.code == "source_changed"
    assert sorted(path.name for path in script.parent.iterdir()) == ["train.py"]


def test_a_request_survives_its_document_and_damage_is_named(script: Path) -> None:
    request = request_for(script, arguments=("a b", "\N{SNOWMAN}", "'"))
    data = encode_request(request)
    again = parse_request(data, name="it")
    assert (again.arguments, again.launcher, again.sources) == (request.arguments, "", {})
    for damaged, code in (
        (b"{}", "foreign_request"),
        (b"\xff", "foreign_request"),
        (data.replace(b'"1.0"', b'"9.0"'), "newer_version"),
        (data.replace(b'"name"', b'"nom"'), "invalid_document"),
    ):
        with pytest.raises(EvidenceError) as refused:
            parse_request(damaged, name="it")
        assert refused.value.code == code


def test_a_missing_interpreter_or_folder_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "log").open("ab") as log, pytest.raises(HostError) as refused:
        run_logged(("/no/such/python",), directory=tmp_path, environment={}, log=log, deadline_seconds=1.0)
    assert (refused.value.code, refused.value.outcome) == ("child_not_started", Outcome.REFUSED)


PARENT_AND_CHILD = (
    "import subprocess, sys; child = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL);"
    " print(child.pid, flush=True); child.wait()"
)
AS_A_LAUNCHER = PARENT_AND_CHILD.replace("=subprocess.DEVNULL", "=subprocess.DEVNULL, start_new_session=True")


@pytest.mark.parametrize("program", [PARENT_AND_CHILD, AS_A_LAUNCHER])
def test_at_the_deadline_all_that_it_started_ends(tmp_path: Path, program: str) -> None:
    path = tmp_path / "log"
    with path.open("ab") as log, pytest.raises(HostError, match="had not ended after 1 s") as failed:
        run_logged(
            (sys.executable, "-c", program),
            directory=tmp_path,
            environment=os.environ,
            log=log,
            deadline_seconds=1.0,
        )
    assert failed.value.outcome is Outcome.FAILED
    assert _ended(int(path.read_text() or "0"))


def _ended(pid: int) -> bool:
    """Whether a process of that number has ended, or had not begun."""
    if pid == 0:
        return True
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("program", [PARENT_AND_CHILD, AS_A_LAUNCHER])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_us_ends_all_that_it_started(tmp_path: Path, number: int, program: str) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from paritrace.process.logged import run_logged\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "run_logged((sys.executable, '-c', sys.argv[1]), directory=Path('.'), environment=os.environ,"
        " log=open('log', 'ab'), deadline_seconds=60.0)"
    )
    ours = subprocess.Popen((sys.executable, "-c", code, program), cwd=tmp_path, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60.0
    while time.monotonic() < until and not _text(tmp_path / "log"):
        os.sched_yield()
    ours.send_signal(number)
    assert ours.wait(timeout=60) != 0
    assert _ended(int(_text(tmp_path / "log")))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("opened", [False, True])
def test_p4_a_run_that_a_full_disk_cut_off_is_none_and_its_words_are_told(tmp_path: Path, *, opened: bool) -> None:
    """Another status of the workload is its own: what it recorded to its end is looked at."""
    log = tmp_path / "again.log"
    log.write_text("$ python\nrefused: write run.json: No space left on device [disk_full]\n    fix: free space\n")
    if opened:
        begin_session(tmp_path / "again", request())
    done = Rerun(125, tmp_path / "again", 1.0, log, ("python",))
    with pytest.raises(HostError, match=r"left no run \(status 125; refused: write run.json: No space") as failed:
        require_run(done, "the baseline")
    assert (failed.value.code, failed.value.outcome) == ("rerun_failed", Outcome.FAILED)
    if opened:
        require_run(replace(done, status=1), "the baseline")


def test_p4_a_workload_that_ends_with_our_status_left_a_run(tmp_path: Path) -> None:
    capture(tmp_path / "again")
    require_run(Rerun(125, tmp_path / "again", 1.0, tmp_path / "again.log", ("python",)), "the baseline")


@pytest.mark.slow
def test_a_run_is_run_again_with_its_own_arguments(script: Path) -> None:
    first = script.parent / "first"
    head = (sys.executable, "-m", "paritrace", "run", "-o", str(first), script.name, "3", "a b")
    assert subprocess.run(head, cwd=script.parent, check=False, capture_output=True).returncode == 3
    with open_run(first) as run:
        request = request_of(run)
    assert request.arguments == ("3", "a b")
    again = rerun(request, output=script.parent / "again", options=("--level=op",))
    assert again.status == 3
    assert "arguments ['3', 'a b']" in again.log.read_text()
    assert again.absent_names == ()
    with open_run(again.run) as run:
        assert request_of(run).capture == ("--level=op",)
        assert request_of(run).sources == request.sources
