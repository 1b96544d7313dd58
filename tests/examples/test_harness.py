"""The harness of examples/harness: killed at every write to its journal and resumed, no step done twice, none lost."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.warm import python

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
HARNESS = ROOT / "examples" / "harness"
SECONDS = 120.0
STAGES = ["capabilities", "discover", "prepare", "baseline", "candidate", "compare", "review"]
ACTIONS = ["capabilities", "discover", "prepare", "trace", "trace", "compare", "align"]
NUM_WRITES = 1 + 2 * len(STAGES)  # which experiment, then `begun` and `ended` of each stage
KILLED = -signal.SIGKILL


class Folder:
    """An experiment, and who answers it: a stand-in, unless `real`."""

    def __init__(self, place: Path, *, real: bool = False) -> None:
        self.place = place
        self.experiment = place / "experiment"
        self.answers = place / "answers"
        self.answers.mkdir(exist_ok=True)
        stand_in = f"{sys.executable} -I -S {HERE / 'standing_in.py'} {self.answers}"
        self.tools = f"{python()} -m paritrace.automation" if real else stand_in

    def words(self, *more: str, killed: tuple[int, str] | None = None) -> list[str]:
        program = [str(HERE / "harness_killed.py"), *map(str, killed)] if killed else ["-m", "paritrace_harness"]
        asked = [str(self.experiment), "--tools", self.tools, "--experiment", str(HARNESS / "experiment.json")]
        return [sys.executable, *program, *asked, *more]

    def run(self, *more: str, killed: tuple[int, str] | None = None) -> "subprocess.CompletedProcess[str]":
        words = self.words(*more, killed=killed)
        return subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False)

    def fault(self, action: str, fault: str) -> None:
        (self.answers / "faults").write_text(f"{action} {fault}")

    @property
    def done(self) -> list[str]:
        """The actions that ended, in their order."""
        return [line.split()[0] for line in (self.answers / "done").read_text().splitlines()]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.experiment / "journal.jsonl").read_bytes().splitlines()]

    def require_each_once(self) -> None:
        """Each stage ended once with a result, which the report is made of."""
        ended = [event["stage"] for event in self.events if event["event"] == "ended" and event["ok"]]
        assert ended == STAGES
        report = json.loads((self.experiment / "report.json").read_bytes())
        digests = {event["stage"]: event["digest"] for event in self.events if event.get("ok")}
        assert report["digests"] == {name: digests[name] for name in report["digests"]}


def environment() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PARITRACE_")}
    return {**kept, "PYTHONPATH": f"{ROOT / 'src'}:{HARNESS}", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_au14_seven_stages_are_done_once_each_and_a_second_start_does_nothing(folder: Folder) -> None:
    first = folder.run()
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines() == [
        *(f"{name}: done, attempt 1" for name in STAGES),
        "first differences:",
        "rank 0, step 0: f at <main>:3",
    ]
    assert folder.done == ACTIONS
    again = folder.run()
    assert again.stdout.splitlines()[: len(STAGES)] == [f"{name}: done before" for name in STAGES]
    assert folder.done == ACTIONS
    folder.require_each_once()


SLOW = pytest.mark.slow


@pytest.mark.parametrize("how", [pytest.param("before", marks=SLOW), "torn", pytest.param("after", marks=SLOW)])
def test_au11_killed_at_one_write_after_the_other_no_step_is_done_twice_and_none_is_lost(
    folder: Folder, how: str
) -> None:
    """Every process is killed at its first write that is new to the journal, until one has nothing left to write."""
    at = 1 if how == "after" else 2  # what dies at its first write, before it, never comes further
    kills = 0
    while (ended := folder.run(killed=(at, how))).returncode == KILLED:
        kills += 1
        assert kills <= 2 * NUM_WRITES
    assert ended.returncode == 0, ended.stderr
    assert kills == (NUM_WRITES if how == "after" else NUM_WRITES - 1)
    folder.require_each_once()
    assert [action for action in folder.done if action != "capabilities"] == ACTIONS[1:]
    assert "capabilities" in folder.done  # a question: it is asked again where its answer was lost


@pytest.mark.slow
@pytest.mark.parametrize("how", ["before", "torn", "after"])
@pytest.mark.parametrize("at", range(1, NUM_WRITES + 1))
def test_au11_killed_at_any_one_write_it_goes_on(folder: Folder, at: int, how: str) -> None:
    assert folder.run(killed=(at, how)).returncode == KILLED
    resumed = folder.run()
    assert resumed.returncode == 0, resumed.stderr
    folder.require_each_once()
    assert [action for action in folder.done if action != "capabilities"] == ACTIONS[1:]


def test_au11_a_harness_that_is_killed_while_the_tool_works_waits_for_its_document(folder: Folder) -> None:
    folder.fault("compare", "waits")
    os.mkfifo(folder.answers / "go")
    harness = subprocess.Popen(folder.words(), env=environment(), stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    told = [harness.stdout.readline().split(":")[0] for _ in STAGES[:5]]
    assert told == STAGES[:5]
    with (folder.answers / "go").open("w"):  # opens when the tool has opened it
        harness.kill()
        assert harness.wait(SECONDS) == KILLED
        harness.stdout.close()
        resumed = subprocess.Popen(folder.words(), env=environment(), stdout=subprocess.PIPE, text=True)
        assert resumed.stdout is not None
        told = [resumed.stdout.readline().strip() for _ in STAGES[:5]]
    assert told == [f"{name}: done before" for name in STAGES[:5]]
    rest = resumed.communicate(timeout=SECONDS)[0].splitlines()
    assert rest[:2] == ["compare: found done", "review: done, attempt 1"]
    assert folder.done == ACTIONS
    folder.require_each_once()


def test_au11_an_operation_that_was_killed_is_told_and_its_output_is_not_used_again(folder: Folder) -> None:
    folder.fault("prepare", "killed")
    first = folder.run()
    assert (first.returncode, "left no document" in first.stderr) == (1, True)
    assert folder.run().returncode == 0
    assert [event["event"] for event in folder.events if event.get("stage") == "prepare"] == [
        "begun",
        "lost",
        "begun",
        "ended",
    ]
    outputs = [event["output"] for event in folder.events if event.get("stage") == "prepare" and "output" in event]
    assert [Path(output).name for output in outputs] == ["prepare-1", "prepare-1", "prepare-2"]
    assert not (folder.experiment / "outputs" / "prepare-1" / "result.json").exists()
    folder.require_each_once()


def test_au11_an_error_stops_it_and_the_next_start_makes_another_attempt(folder: Folder) -> None:
    folder.fault("discover", "refused")
    stopped = folder.run()
    assert (stopped.returncode, "source_changed: net.py is another one" in stopped.stderr) == (1, True)
    assert "discover: done, attempt 2" in folder.run().stdout
    folder.require_each_once()


def test_au14_each_stage_can_be_resumed_alone(folder: Folder) -> None:
    too_early = folder.run("--stage", "compare")
    assert (too_early.returncode, "compare needs baseline, candidate" in too_early.stderr) == (1, True)
    for name in STAGES:
        assert folder.run("--stage", name).stdout.splitlines() == [f"{name}: done, attempt 1"]
    assert folder.run().returncode == 0
    folder.require_each_once()


@pytest.mark.parametrize("what", ["journal", "document", "experiment", "request of another"])
def test_au11_what_was_changed_in_between_is_refused_by_name(folder: Folder, what: str) -> None:
    assert folder.run("--stage", "capabilities").returncode == 0
    assert folder.run("--stage", "discover").returncode == 0
    match what:
        case "journal":
            path, told = folder.experiment / "journal.jsonl", "is damaged at line 3: it does not follow"
            path.write_bytes(path.read_bytes().replace(b'"attempt": 1', b'"attempt": 2', 1))
        case "document":
            path, told = folder.experiment / "documents" / "discover-1.json", "is not the document"
            path.write_bytes(path.read_bytes() + b" ")
        case "experiment":
            path, told = folder.experiment / "experiment.json", "another experiment"
            path.write_bytes(path.read_bytes().replace(b"600", b"601"))
        case _:
            assert folder.run(killed=(2, "before")).returncode == KILLED  # prepare is done, and not yet said to be
            path, told = folder.experiment / "outputs" / "prepare-1" / "operation.json", "belongs to another request"
            path.write_text(json.dumps({"request_sha256": "0" * 64}))
    before = folder.done
    stopped = folder.run()
    assert (stopped.returncode, told in stopped.stderr) == (1, True), stopped.stderr
    assert folder.done == before


def test_au11_one_process_at_a_time_works_on_an_experiment(folder: Folder) -> None:
    folder.fault("compare", "waits")
    os.mkfifo(folder.answers / "go")
    harness = subprocess.Popen(folder.words(), env=environment(), stdout=subprocess.DEVNULL)
    with (folder.answers / "go").open("w"):
        second = folder.run()
    assert (second.returncode, "another process works on" in second.stderr) == (1, True)
    assert harness.wait(SECONDS) == 0


@pytest.mark.slow
def test_au11_a_real_investigation_killed_at_every_write_to_its_journal(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = Folder(tmp_path, real=True)
    kills = 0
    while (ended := folder.run(killed=(1, "after"))).returncode == KILLED:
        kills += 1
        assert kills <= NUM_WRITES
    assert (ended.returncode, kills) == (0, NUM_WRITES), ended.stderr
    folder.require_each_once()
    report = json.loads((folder.experiment / "report.json").read_bytes())
    assert [(one["rank"], one["step"], one["function"]) for one in report["first_differences"]] == [
        (0, 0, "__main__.clipped")
    ]
    assert Path(report["reviewed"]).is_dir()
