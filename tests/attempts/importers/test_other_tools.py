"""SWE-bench, terminal-bench, NeMo Fabric and run records become attempts (AT-16, D-01, D-02, D-03, D-19).

SWE-bench and terminal-bench: files that those projects' own code wrote, and synthetic ones; no result of any model.
"""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from paritrace.attempts import api
from paritrace.attempts.accounts import AccountingSource
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.importers.importing import TOOLS, import_attempts, tool_of
from paritrace.attempts.manifest import RequestState, StopKind
from paritrace.errors import EvidenceError, RequestError
from paritrace.evidence.codec import encode_document
from tests.attempts.importers.evidence import DATA, manifest_of, refused_of, verdicts, written


def report(**changes: object) -> dict[str, object]:
    lists = {
        "submitted_ids": ["a", "b", "c", "d", "e"],
        "completed_ids": ["a", "b", "e"],
        "incomplete_ids": ["f"],
        "empty_patch_ids": ["c"],
        "resolved_ids": ["a"],
        "unresolved_ids": ["b", "e"],
        "error_ids": ["d"],
        "ambiguous_failure_ids": ["e"],
        "failure_reasons": {"e": "no_tests_collected"},
    }
    return {"total_instances": 6, "schema_version": 2} | lists | changes


def test_at_16_a_swebench_report_keeps_what_nobody_judged_apart(tmp_path: Path) -> None:
    manifest = manifest_of("swebench", written(tmp_path / "model.run.json", report()), base=tmp_path)
    assert verdicts(manifest) == {"pass": 1, "fail": 1, "error": 2, "execution unknown": 1, "missing": 1}
    stops = {one.task_id: one.stop.word for one in manifest.attempts}
    assert (stops["c"], stops["e"], stops["f"]) == ("empty patch", "no_tests_collected", "no prediction")
    assert manifest.configurations[0].attempts_complete


def test_at_16_a_swebench_report_that_names_fewer_than_it_counts_is_not_verified(tmp_path: Path) -> None:
    manifest = manifest_of("swebench", written(tmp_path / "r.json", report(total_instances=9)), base=tmp_path)
    (configuration,) = manifest.configurations
    assert not configuration.attempts_complete
    assert [gap.reason for gap in configuration.gaps] == [AttemptGap.ATTEMPT_LIST_UNVERIFIED]


def test_at_16_a_report_that_swebench_itself_wrote_is_read_whole() -> None:
    path = DATA / "swebench" / "example-model.paritrace-sample.json"
    manifest = manifest_of("swebench", path)
    assert verdicts(manifest) == {"pass": 2, "fail": 1, "error": 4, "execution unknown": 1, "missing": 2}
    assert manifest.configurations[0].attempts_complete
    assert {one.task_id for one in manifest.attempts} == {f"example__repo-{number}" for number in range(1, 11)}
    words = {one.task_id.rsplit("-", 1)[1]: one.stop.word for one in manifest.attempts if one.stop.word}
    assert words == {
        "10": "no prediction",
        "4": "no_tests_collected",
        "5": "network_unreachable",
        "6": "container_unavailable",
        "8": "empty patch",
        "9": "no prediction",
    }


def test_at_16_a_prediction_of_another_data_set_is_told_and_counted_nowhere() -> None:
    (refused,) = refused_of("swebench", DATA / "swebench" / "example-model.paritrace-sample.json")
    assert refused.endswith("1 predicted that its data set does not have, counted nowhere: example__elsewhere-1")


def test_a_missing_attempt_is_one_gap_also_where_its_importer_noted_it(tmp_path: Path) -> None:
    imported = manifest_of("swebench", written(tmp_path / "r.json", report()), base=tmp_path)
    (tmp_path / "m.json").write_bytes(encode_document(imported))
    (one,) = api.summarize(api.load(tmp_path / "m.json")).configurations
    assert (one.attempts.gaps, one.gaps["result_missing"]) == ({"result_missing": 1}, 1)


def test_a_json_file_that_is_no_report_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError) as refused:
        manifest_of("swebench", written(tmp_path / "r.json", {"x": 1}), base=tmp_path)
    assert refused.value.code == "nothing_to_import"
    assert refused.value.details == (
        "r.json: not a SWE-bench run report: it has no `resolved_ids` and `submitted_ids`",
    )


def trial(name: str, resolved: bool | None, mode: str = "unset", **changes: object) -> dict[str, object]:
    times = {"agent_started_at": "2026-01-01T00:00:00+00:00", "agent_ended_at": "2026-01-01T00:02:00+00:00"}
    plain = {"trial_name": name, "task_id": name.split(".", maxsplit=1)[0], "is_resolved": resolved}
    return plain | {"failure_mode": mode, "instruction": "x"} | times | changes


def bench(folder: Path, trials: list[dict[str, object]], **lock: object) -> Path:
    """A terminal-bench run's folder, synthetic."""
    written(folder / "results.json", {"results": trials, "n_resolved": 0, "accuracy": 0.0})
    tasks = sorted({str(one["task_id"]) for one in trials})
    plain = {"dataset": {"name": "core", "version": "0.1.1", "task_ids": tasks}, "agent": {"name": "mini"}}
    written(folder / "tb.lock", plain | {"run_config": {"n_attempts": 1, "n_concurrent_trials": 8}} | lock)
    return folder


RUN = DATA / "terminal_bench" / "2026-11-01__10-00-00"


def test_at_16_a_run_that_terminal_benchs_own_records_wrote_is_read_whole() -> None:
    manifest = manifest_of("terminal-bench", RUN)
    assert verdicts(manifest) == {"pass": 3, "fail": 2, "execution failed": 1, "error": 1, "missing": 1}
    (configuration,) = manifest.configurations
    assert configuration.attempts_complete
    assert configuration.fields["harness_version"] == "0.2.18"
    assert configuration.fields["harness_commit"] is None  # "unknown" is not recorded (D-19)
    assert configuration.fields["timeout_multiplier"] == "1.0"
    stops = Counter(one.stop.kind for one in manifest.attempts)
    assert stops == {StopKind.FINISHED: 4, StopKind.TIMEOUT: 2, StopKind.ERROR: 1, StopKind.UNKNOWN: 1}
    assert {one.stop.limit_seconds for one in manifest.attempts if one.stop.kind is StopKind.TIMEOUT} == {900.0}


@pytest.mark.parametrize("left", [None, '{"id": "x", "results": [{"trial'], ids=["none yet", "torn"])
def test_at_16_what_a_killed_run_finished_is_read_from_the_trials_own_results(tmp_path: Path, left: str | None) -> None:
    run = tmp_path / RUN.name
    shutil.copytree(RUN, run)
    (run / "results.json").unlink()
    if left is not None:
        (run / "results.json").write_text(left)
    found = manifest_of("terminal-bench", run, base=tmp_path)
    assert verdicts(found) == verdicts(manifest_of("terminal-bench", RUN))
    assert len(refused_of("terminal-bench", run, base=tmp_path)) == (left is not None)
    assert tool_of(run) == "terminal-bench"


def test_at_16_a_trial_that_the_runs_results_do_not_have_yet_is_read_too(tmp_path: Path) -> None:
    run = tmp_path / RUN.name
    shutil.copytree(RUN, run)
    whole = json.loads((run / "results.json").read_text())
    written(run / "results.json", whole | {"results": whole["results"][:3]})
    assert verdicts(manifest_of("terminal-bench", run, base=tmp_path)) == verdicts(manifest_of("terminal-bench", RUN))


def test_at_16_a_run_that_was_killed_before_its_first_trial_is_all_missing(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    shutil.copy(RUN / "tb.lock", tmp_path / "run")
    assert verdicts(manifest_of("terminal-bench", tmp_path / "run", base=tmp_path)) == {"missing": 8}
    assert verdicts(manifest_of("terminal-bench", tmp_path, base=tmp_path)) == {"missing": 8}


def test_d_01_three_values_of_is_resolved_stay_three(tmp_path: Path) -> None:
    trials = [trial(f"r{i}.1", True) for i in range(6)] + [trial(f"u{i}.1", False) for i in range(11)]
    trials += [trial(f"n{i}.1", None, "unknown_agent_error") for i in range(59)]
    trials += [trial(f"p{i}.1", None, "parse_error") for i in range(3)] + [trial("t.1", None, "test_timeout")]
    manifest = manifest_of("terminal-bench", bench(tmp_path / "run", trials), base=tmp_path)
    assert verdicts(manifest) == {"pass": 6, "fail": 11, "execution failed": 59, "error": 4}
    words = Counter(one.stop.word for one in manifest.attempts if not any(v.counts for v in one.evaluations))
    assert words == {"unknown_agent_error": 59}


def test_d_02_a_timeout_is_how_it_stopped_and_the_verdict_stands(tmp_path: Path) -> None:
    run = bench(tmp_path / "run", [trial("a.1", True, "agent_timeout"), trial("b.1", False, "agent_timeout")])
    manifest = manifest_of("terminal-bench", run, base=tmp_path)
    assert verdicts(manifest) == {"pass": 1, "fail": 1}
    assert [one.stop.kind for one in manifest.attempts] == [StopKind.TIMEOUT] * 2


def test_d_03_zero_tokens_of_an_agent_that_ran_two_minutes_show_work(tmp_path: Path) -> None:
    tokens: dict[str, object] = {"total_input_tokens": 0, "total_output_tokens": 0}
    trials = [trial("a.1", False) | tokens, trial("b.1", False, agent_ended_at=None) | tokens, trial("c.1", False)]
    attempts = manifest_of("terminal-bench", bench(tmp_path / "run", trials), base=tmp_path).attempts
    shown = [None if one.accounting is None else one.accounting.usage[0].work_shown for one in attempts]
    assert shown == [True, False, None]


def test_at_16_what_the_lock_plans_and_no_trial_is_there_for_is_missing(tmp_path: Path) -> None:
    lock = {"dataset": {"name": "core", "version": "1", "task_ids": ["a", "b"]}, "run_config": {"n_attempts": 2}}
    run = bench(tmp_path / "run", [trial("a.1", True)], **lock)
    assert verdicts(manifest_of("terminal-bench", run, base=tmp_path)) == {"pass": 1, "missing": 3}


def test_d_19_what_differs_between_runs_of_one_configuration_stands_on_each_attempt(tmp_path: Path) -> None:
    bench(tmp_path / "runs" / "1", [trial("a.1", True)])
    config = {"n_attempts": 1, "n_concurrent_trials": 32, "global_timeout_multiplier": 2.0}
    bench(tmp_path / "runs" / "2", [trial("a.1", True)], agent={"name": "mini", "model_name": "m-1"}, run_config=config)
    attempts = manifest_of("terminal-bench", tmp_path / "runs", base=tmp_path).attempts
    seen = [(one.fields["model"], one.fields["concurrency"], one.fields["timeout_multiplier"]) for one in attempts]
    assert seen == [(None, "8", None), ("m-1", "32", "2.0")]  # null is not recorded


def test_at_3_a_fabric_result_is_a_request_whose_file_is_read_for_its_usage() -> None:
    manifest = manifest_of("nemo-fabric", DATA / "nemo_fabric" / "result-ok.json")
    (attempt,) = manifest.attempts
    (request,) = attempt.requests
    assert (request.request_id, request.state, request.result) == (
        "req-ok",
        RequestState.RESULT,
        "nemo_fabric/result-ok.json",
    )
    assert {one.name for one in request.resources} == {
        "resident_memory_bytes",
        "process_count",
        "cpu_time_seconds",
    }
    assert not manifest.configurations[0].attempts_complete


def test_at_4_a_failed_result_keeps_its_code_and_no_message() -> None:
    (attempt,) = manifest_of("nemo-fabric", DATA / "nemo_fabric" / "result-agentfail.json").attempts
    assert (attempt.stop.kind, attempt.stop.word) == (StopKind.ERROR, "max_turns_exceeded")


def test_at_3_the_published_samples_count_by_their_trajectory_alone() -> None:
    attempts = manifest_of("nemo-fabric", DATA / "nemo_fabric" / "swebench").attempts
    legacy = {one.fields["harness"]: one.accounting for one in attempts}
    assert {name: one.source for name, one in legacy.items() if one is not None} == {
        "claude": AccountingSource.LEGACY,
        "hermes": AccountingSource.LEGACY,
    }
    claude = legacy["claude"]
    assert claude is not None
    (usage,) = claude.usage
    assert (usage.input_tokens, usage.cached_input_tokens, usage.input_includes_cache) == (358, 3_984_621, True)


def test_at_3_a_run_record_is_a_request_and_its_context_names_the_task() -> None:
    (attempt,) = manifest_of("records", DATA / "manifest").attempts
    assert (attempt.task_id, attempt.stop.kind, attempt.stop.limit_seconds) == ("t1", StopKind.TIMEOUT, 1.0)
    assert attempt.requests[0].state is RequestState.RECORD_ONLY


def test_at_20_a_record_that_only_began_is_an_interrupted_request(tmp_path: Path) -> None:
    lines = (DATA / "manifest" / "run-record.jsonl").read_bytes().split(b"\n")
    hidden = tmp_path / ".paritrace" / "runtime-1" / "invocation-1"
    hidden.mkdir(parents=True)
    (hidden / "run-record.jsonl").write_bytes(lines[0] + b"\n" + lines[1][:100])
    (attempt,) = manifest_of("records", tmp_path, base=tmp_path).attempts
    assert attempt.requests[0].state is RequestState.STARTED_ONLY
    assert attempt.stop.word == "interrupted; cause unknown"
    (refusal,) = refused_of("records", tmp_path, base=tmp_path)
    assert refusal.endswith("line 2: the file ends in the middle of a value (torn)")


def test_the_tool_is_recognised_by_what_lies_there(tmp_path: Path) -> None:
    bench(tmp_path / "tb", [trial("a.1", True)])
    written(tmp_path / "swe" / "r.json", report())
    places = {
        "inspect": DATA / "inspect",
        "harbor": DATA / "harbor" / "alpha",
        "swebench": tmp_path / "swe",
        "terminal-bench": tmp_path / "tb",
        "nemo-fabric": DATA / "nemo_fabric",
        "records": DATA / "manifest",
    }
    assert {name: tool_of(path) for name, path in places.items()} == {name: name for name in TOOLS}
    assert tool_of(tmp_path / "nothing") is None


def test_names_of_configurations_fit_their_paths(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as refused:
        import_attempts("inspect", [DATA, DATA], base=tmp_path)
    assert refused.value.code == "configuration_names"
    with pytest.raises(RequestError) as refused:
        import_attempts("excel", [DATA], base=tmp_path)
    assert refused.value.code == "unknown_tool"


@pytest.mark.parametrize("name", ["", "x" * 1025])
def test_at_16_a_name_that_no_manifest_takes_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(RequestError) as refused:
        import_attempts("swebench", [tmp_path / "a.json"], base=tmp_path, configurations=[name])
    assert refused.value.code == "configuration_names"


def our_record(folder: Path, context: dict[str, str], **end: object) -> Path:
    """A run record as paritrace writes it, shortened to what is read."""
    folder.mkdir(parents=True)
    ids = {"runtime_id": "r", "invocation_id": folder.name, "request_id": f"q-{folder.name}"}
    start = {"line": "start", "wall_ns": 1_000_000_000, "context": {"values": context}, "names": {"harness": "mini"}}
    last = {"line": "end", "wall_ns": 3_000_000_000, "status": "succeeded", "elapsed_seconds": 2.0, "stop": None}
    lines = (json.dumps(start | ids), json.dumps(last | ids | end))
    (folder / "run-record.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_at_3_our_own_records_account_for_their_requests_and_group_by_their_context(tmp_path: Path) -> None:
    context = {"task_id": "t1", "task_revision": "v2", "attempt_id": "a1", "configuration_id": "beta"}
    usage = {"input_tokens": 5, "cached_input_tokens": 7, "output_tokens": 3, "input_includes_cache": False}
    root = tmp_path / "run" / ".paritrace" / "r"
    our_record(root / "i1", context, usage=usage | {"cost": 0.25, "currency": "EUR"})
    our_record(root / "i2", context, usage=None, usage_gap={"gap": "not_collected"}, resources={"process_count": 2})
    manifest = manifest_of("records", tmp_path / "run", base=tmp_path)
    (attempt,) = manifest.attempts
    assert (attempt.attempt_id, attempt.task_id, attempt.task_revision, attempt.configuration_id) == (
        "a1",
        "t1",
        "v2",
        "beta",
    )
    assert [one.value for request in attempt.requests for one in request.resources] == [2.0]
    (tmp_path / "m.json").write_bytes(encode_document(manifest))
    (found,) = api.summarize(api.load(tmp_path / "m.json")).configurations
    assert found.tokens["cached_input_tokens"].low == 7  # the other request says nothing: no more than at least
    assert found.tokens["input_tokens"].low == 5 + 7
    assert [(cost.basis.currency, cost.sum.low) for cost in found.costs] == [("EUR", 0.25)]
    assert found.durations.num_invocations == 2


def test_d_23_when_the_agent_ended_when_the_host_ended_and_why_stand_apart(tmp_path: Path) -> None:
    """The agent was done after 95 s and right; its process stayed until the timeout of 900 s."""
    times = {
        "trial_started_at": "2026-01-01T00:00:00+00:00",
        "trial_ended_at": "2026-01-01T00:15:00+00:00",
        "agent_started_at": "2026-01-01T00:00:00+00:00",
        "agent_ended_at": "2026-01-01T00:01:35+00:00",
    }
    run = bench(tmp_path / "run", [trial("a.1", True, "agent_timeout") | times])
    manifest = manifest_of("terminal-bench", run, base=tmp_path)
    (tmp_path / "m.json").write_bytes(encode_document(manifest))
    (found,) = api.summarize(api.load(tmp_path / "m.json")).configurations
    assert found.stops == {"timeout": 1}
    assert found.evaluators[0].states == {"evaluated_pass": 1}
    assert found.durations.task_seconds.observed_sum == 900
    assert found.durations.invocation_union_seconds.observed_sum == 95
