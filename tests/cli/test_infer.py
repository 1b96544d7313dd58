"""`paritrace infer` from end to end: screens, documents, errors, and a real kill between the files (IN-5 to IN-9)."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paritrace.cli.entry import status_of
from paritrace.inference.identities import event_bytes
from paritrace.inference.lines import encode_definition
from paritrace.inference.records import AnyEvent
from tests.conftest import Golden
from tests.inference.evidence import DEVICE, ENGINE, claim, iteration, kernel, launch, member, request

TRACE = "trace:x"
ENGINE_EVENTS: list[AnyEvent] = [
    request("a"),
    iteration("1", 0, 500),
    iteration("2", 500, 900),
    member("1", "a", 3),
    member("2", "b", 1),
    iteration("step", 100, 200, thread_id="3"),
]
TRACE_EVENTS: list[AnyEvent] = [
    claim("k1", "1", start_ns=10, end_ns=60, runtime_correlation_id="5", context=DEVICE),
    kernel("k2", 40, 90, runtime_correlation_id="5"),
    kernel("k3", 95, 99, runtime_correlation_id="0"),
    kernel("\x1b[31mk4", 95, 99),
    kernel("g", 100, 180, kind="graph_level", runtime_correlation_id="77"),
    launch("l", 110, 120, runtime_correlation_id="77"),
]


def write(path: Path, events: list[AnyEvent]) -> str:
    contexts = {event.context.id: event.context for event in events}
    lines = [encode_definition(one) for one in contexts.values()]
    path.write_bytes(b"".join([*lines, *(event_bytes(event) + b"\n" for event in events)]))
    return str(path)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(tmp_path)
    files = [write(tmp_path / "engine.jsonl", ENGINE_EVENTS), write(tmp_path / "trace.jsonl", TRACE_EVENTS)]
    assert status_of(["infer", "init", "run", "--run-id", "run-1"]) == 0
    assert status_of(["infer", "append", "run", "--events", files[0], "--trace-events", files[1]]) == 0
    capsys.readouterr()
    return "run"


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert status_of(["infer", *arguments]) == status
    return capsys.readouterr().out.replace(os.getcwd(), "HERE")


SCREENS = {
    "link": ["link", "run"],
    "account": ["account", "run", "--shares", "tokens/1"],
    "show": ["show", "run"],
    "explained": ["link", "run", "--explain", "k2"],
    "recover": ["recover", "run"],
}


@pytest.mark.parametrize("name", SCREENS)
def test_screens(run: str, name: str, golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, *SCREENS[name])
    assert "\x1b" not in text
    golden(f"infer/{name}.txt", text)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(said(capsys, *arguments, "--json"))


def test_documents_have_what_was_promised(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    link = document(capsys, "link", run)
    assert link["gpu"]["by_basis"] == {"exact_id": 2, "same_thread_range": 1}
    assert link["gpu"]["by_reason"] == {"no_key": 1, "sentinel": 1}
    assert link["linked_fraction"] == 0.6
    account = document(capsys, "account", run)
    (device,) = account["devices"]
    assert {"busy_ns", "summed_ns", "activities", "unlinked", "unmeasured"} <= set(device)
    assert (device["busy_ns"], device["summed_ns"]) == (164, 188)
    assert account["artifact"]["folded_sha256"] == document(capsys, "show", run)["artifact"]["folded_sha256"]


def test_again_is_already_present_and_no_byte_changes(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (tmp_path / run / "inference.jsonl").read_bytes()
    events = ["--events", "engine.jsonl", "--trace-events", "trace.jsonl"]
    told = document(capsys, "append", run, *events)
    assert (told["num_written"], told["already_present"]) == (0, len(ENGINE_EVENTS) + len(TRACE_EVENTS) + 2)
    assert (tmp_path / run / "inference.jsonl").read_bytes() == before


def test_evidence_in_the_other_order_gives_the_same_links(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "init", "other", "--run-id", "run-1")
    said(capsys, "append", "other", "--trace-events", "trace.jsonl")
    early = document(capsys, "link", "other")
    assert early["gpu"]["by_reason"]["dangling_iteration"] == 2
    said(capsys, "append", "other", "--events", "engine.jsonl")
    late, first = document(capsys, "link", "other"), document(capsys, "link", run)
    assert late["gpu"] == first["gpu"]
    assert late["superseded"] == 4
    assert document(capsys, "link", "other")["written"] == 0


def test_errors_are_one_document(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        json.loads(said(capsys, "link", run, "--explain", "nobody", "--json", status=2))["error"]["code"]
        == "no_such_activity"
    )
    with Path("run/inference.jsonl").open("ab") as file:
        file.write(b'{"torn')
    assert json.loads(said(capsys, "account", run, "--json", status=2))["error"]["code"] == "torn_tail"
    assert json.loads(said(capsys, "show", "nowhere", "--json", status=2))["error"]["code"] == "no_artifact"
    assert document(capsys, "recover", run)["kept"][0]["num_bytes"] == 6
    assert document(capsys, "account", run)["loss"][0]["reason"] == "torn_tail"


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from paritrace.files import Files, Primitives
from paritrace.inference.appending import AppendOptions, append
from tests.inference.evidence import Adapter, RUN, SESSION, iteration

class Killing(Primitives):
    def rename(self, source, target):
        if Path(target).name == "run.json":  # the artifact is longer by now, the envelope is the old one
            os.kill(os.getpid(), signal.SIGKILL)
        super().rename(source, target)

options = AppendOptions(files=Files(Killing()))
append(Path(sys.argv[1]), run_id=RUN, session=SESSION, engine_adapter=Adapter([iteration("late")]), options=options)
"""


@pytest.mark.slow
def test_a_kill_between_the_two_files_is_repaired_by_the_next_command_which_says_so(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [(tmp_path / run / name).read_bytes() for name in ("inference.jsonl", "run.json")]
    done = subprocess.run([sys.executable, "-c", KILLED, run, str(Path(__file__).parents[2])], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    after = [(tmp_path / run / name).read_bytes() for name in ("inference.jsonl", "run.json")]
    assert after[0] != before[0]
    assert after[1] == before[1]
    assert status_of(["infer", "show", run, "--json"]) == 0
    told = capsys.readouterr()
    assert "cut off after its promise: it was finished" in told.err
    assert json.loads(told.out)["events"]["iteration"] == 4
    assert ENGINE.facts.run_id == "run-1"
    assert status_of(["runs", "verify", run]) == 0
