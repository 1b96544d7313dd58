"""Trajectories out of what tools leave (AT-23, AT-7)."""

import json
import shutil
from pathlib import Path

from paritrace.attempts.importers.reading import Evidence
from paritrace.attempts.importers.trajectories import trajectories
from paritrace.attempts.traces import StepKind, Trace
from tests.attempts.importers.evidence import ALPHA, DATA, INSPECT_A, INSPECT_B, inspect_log, inspect_sample, written

ATIF = DATA / "nemo_fabric" / "swebench" / "hermes-relay" / "trajectory.trimmed.json"


def traces_of(path: Path) -> list[Trace]:
    return list(trajectories(path, Evidence(path.parent)))


def test_at_23_a_real_trajectory_has_its_calls_with_their_results() -> None:
    (trace,) = traces_of(ATIF)
    assert len(trace.steps) == 42
    assert [step.name for step in trace.steps[:3]] == ["search_files", "execute_code", "search_files"]
    assert (trace.steps[9].name, trace.steps[9].program) == ("terminal", "ls")
    assert sum(step.result_sha256 is not None for step in trace.steps) > 35
    assert trace.steps[0].origin.pointer == "/steps/2/tool_calls/0"


def test_at_7_steps_that_were_copied_from_an_earlier_trajectory_are_apart(tmp_path: Path) -> None:
    plain = json.loads(ATIF.read_text())
    agent = [step for step in plain["steps"] if step["source"] == "agent"]
    for step in agent[:5]:
        step["is_copied_context"] = True
    (trace,) = traces_of(written(tmp_path / "t.json", plain))
    assert (trace.inherited, len(trace.steps)) == (5, 37)


def test_at_23_an_inspect_sample_is_a_trajectory_and_its_score_the_outcome() -> None:
    a, b = traces_of(INSPECT_A), traces_of(INSPECT_B)
    assert len(a) == len(b) == 18
    assert (a[0].task_id, a[0].outcome, a[0].steps[0].kind) == ("arithmetic/t01", "match I", StepKind.MESSAGE)
    assert max(len(trace.steps) for trace in b) == 7


def test_at_23_tool_events_come_with_arguments_results_and_attachments(tmp_path: Path) -> None:
    call = {"id": "c1", "function": "bash", "arguments": {"command": "attachment://h"}}
    answer = {"choices": [{"message": {"role": "assistant", "content": "let me look", "tool_calls": [call]}}]}
    tool = {"event": "tool", "function": "bash", "arguments": call["arguments"], "result": "a", "completed": "2026"}
    events = [{"event": "model", "output": answer}, tool, tool | {"completed": None, "result": ""}]
    sample = inspect_sample("s1", events=events, attachments={"h": "cd /x && ls -la"})
    (trace,) = traces_of(written(tmp_path / "log.json", inspect_log([sample])))
    first, second = trace.steps
    assert (first.name, first.program, first.arguments[0].text) == ("bash", "ls", "cd /x && ls -la")
    assert first.turn == second.turn
    assert (first.result_sha256 is None, second.result_sha256 is None) == (False, True)
    assert (first.said_sha256 is None, second.said_sha256 is None) == (False, True)


def test_at_23_a_log_that_kept_no_events_is_read_from_its_messages(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": "ls", "arguments": {}}]},
        {"role": "tool", "tool_call_id": "1", "content": "a"},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]
    (trace,) = traces_of(written(tmp_path / "log.json", inspect_log([inspect_sample("s1", messages=messages)])))
    assert [(step.name, step.result_sha256 is not None) for step in trace.steps] == [("ls", True), ("message", False)]


def test_at_23_a_harbor_trial_has_its_task_and_reward(tmp_path: Path) -> None:
    job = Path(shutil.copytree(ALPHA, tmp_path / "alpha"))
    for name in ("double-1__9k28ehG", "double-2__vxTSgwT"):
        (job / name / "agent").mkdir()
        shutil.copy(ATIF, job / name / "agent" / "trajectory.json")
    found = [(trace.task_id, trace.attempt_id, trace.outcome) for trace in traces_of(job)]
    assert found == [
        ("double-1", "double-1__9k28ehG", "reward 0"),
        ("double-2", "double-2__vxTSgwT", "reward 1"),
    ]
    assert len(traces_of(job / "double-2__vxTSgwT")) == 1
