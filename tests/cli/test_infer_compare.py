"""`paritrace infer compare` on artifacts: what it shows, and what decides its status (IN-17, IN-27)."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from paritrace.cli.entry import paritrace
from paritrace.cli.output import ExitStatus
from paritrace.errors import EvidenceError, RequestError
from tests.conftest import Golden
from tests.inference.comparison.arms import KNOWN, arm, record, run_of

SCALES = (1.0, 1.02, 0.98, 1.01)
SLOWER = (1.3, 1.33, 1.27, 1.32)
GATE = "latency.p50<=1.05"


def compared(*arguments: object) -> Result:
    words = ["infer", "compare", *(str(one) for one in arguments)]
    return CliRunner().invoke(paritrace, words, catch_exceptions=False, standalone_mode=False)


def document(*arguments: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(compared(*arguments, "--json").stdout)
    return found


def metric(found: dict[str, object], name: str) -> dict[str, object]:
    metrics = found["metrics"]
    assert isinstance(metrics, list)
    (one,) = [one for one in metrics if one["metric"] == name]
    return dict(one)


def test_the_screen(tmp_path: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base, cand = (
        arm(Path(), "base", SCALES, failed=2),
        arm(Path(), "cand", SLOWER, failed=5, changed={"engine.config": "b"}),
    )
    words = ["--treatment", "engine.config", "--gate", GATE, "--gate", "latency.p99<=2", "--slo", "quick:latency<=0.15"]
    screen = compared(base, cand, *words).stdout
    golden("inference/comparison.txt", screen)


def test_paired_blocks_give_a_ratio_and_gates_decide(tmp_path: Path) -> None:
    base, cand = arm(tmp_path, "base", SCALES), arm(tmp_path, "cand", SLOWER, changed={"engine.config": "b"})
    found = document(base, cand, "--treatment", "engine.config")
    assert (found["compatibility"], found["design"]) == ("compatible", "paired_blocks")
    worst = metric(found, "latency.p50")["worst"]
    assert isinstance(worst, dict)
    assert worst["value"] == pytest.approx(1.303, abs=0.01)
    assert compared(base, cand, "--gate", GATE, "--exit-code").return_value == ExitStatus.DIFFERENCE
    assert compared(base, cand, "--gate", "latency.p50<=1.5", "--exit-code").return_value == ExitStatus.DONE


def test_independent_arms_of_unlike_sizes(tmp_path: Path) -> None:
    base, cand = arm(tmp_path, "base", SCALES), arm(tmp_path, "cand", SCALES[:3])
    found = document(base, cand)
    assert found["design"] == "independent"
    with pytest.raises(EvidenceError) as refused:
        compared(base, cand, "--design", "paired_blocks")
    assert refused.value.code == "blocks_do_not_match"


def test_open_and_closed_loop_are_not_compared_at_all(tmp_path: Path) -> None:
    base, cand = arm(tmp_path, "base", SCALES), arm(tmp_path, "cand", SCALES, changed={"load.loop": "closed"})
    found = document(base, cand)
    assert found["compatibility"] == "incompatible"
    assert metric(found, "latency.p50")["worst"] == {"kind": "gap", "gap": "incompatible"}
    assert compared(base, cand, "--gate", GATE, "--exit-code").return_value == ExitStatus.UNDETERMINED


def test_a_saturated_client_voids_latencies_and_nothing_else(tmp_path: Path) -> None:
    base, cand = arm(tmp_path, "base", SCALES), arm(tmp_path, "cand", SCALES, changed={"load.client_saturated": True})
    found = document(base, cand)
    assert metric(found, "latency.p50")["worst"] == {"kind": "gap", "gap": "client_saturated"}
    fraction = metric(found, "successful_fraction")["worst"]
    assert isinstance(fraction, dict)
    assert fraction["value"] == 0.0


def test_in17_objectives_are_held_against_all_that_was_offered(tmp_path: Path) -> None:
    base, cand = arm(tmp_path, "base", SCALES), arm(tmp_path, "cand", SCALES, failed=60)
    options = ["--slo", "quick:latency<=0.15", "--slo", "any:latency<=9"]
    found = document(base, cand, *options, "--gate", "attained.any>=-0.05")
    runs = found["candidate"]
    assert isinstance(runs, list)
    assert [one["figures"]["attained.any"] for one in runs] == [{"kind": "value", "low": 0.4, "high": 0.4}] * 4
    worst = metric(found, "attained.any")["worst"]
    assert isinstance(worst, dict)
    assert (worst["scale"], worst["value"]) == ("difference", pytest.approx(-0.6))
    assert found["objectives"] == [
        {"name": "quick", "targets": [{"metric": "latency", "seconds": 0.15}]},
        {"name": "any", "targets": [{"metric": "latency", "seconds": 9.0}]},
    ]
    screen = compared(base, cand, *options).stdout
    assert "objective quick: latency <= 0.15 s" in screen
    assert "attained.any: 0.4000 of what was offered" in screen


def test_in17_p_values_of_several_metrics_are_adjusted_and_ratios_may_be_of_means(tmp_path: Path) -> None:
    base, cand = arm(tmp_path, "base", SCALES), arm(tmp_path, "cand", (1.3, 1.36, 1.29, 1.31))
    found = document(base, cand, "--ratio", "means", "--design", "independent")
    assert found["ratio"] == "means_ratio"
    metrics = found["metrics"]
    assert isinstance(metrics, list)
    tested = [one for one in metrics if isinstance(one["p_value"], float)]
    assert len(tested) == 8
    assert all(one["p_value"] < one["p_holm"] <= 8 * one["p_value"] for one in tested)
    worst = metric(found, "latency.p50")["worst"]
    assert isinstance(worst, dict)
    assert worst["interval"]["method"].startswith("Fieller interval")
    assert "ratios of means, Fieller intervals" in compared(base, cand, "--ratio", "means").stdout


def test_in27_a_schedule_that_is_recorded_is_in_the_latencies(tmp_path: Path) -> None:
    records = [record(number, latency_ms=100.0) for number in range(5)]
    for one in records:
        metadata = one["metadata"]
        assert isinstance(metadata, dict)
        metadata["request_start_ns"] = 60_000_000
        metadata["credit_issued_ns"] = 10_000_000
    runs = [run_of(tmp_path, name, records, conditions=KNOWN) for name in ("a", "b")]
    found = document(*runs)
    (run,) = found["baseline"] if isinstance(found["baseline"], list) else []
    assert run["figures"]["latency.p50"]["low"] == pytest.approx(0.15)  # 100 ms, and 50 ms late
    cautions = found["cautions"]
    assert isinstance(cautions, list)
    assert not any(one.startswith("service_time_only") for one in cautions)


def test_an_arm_whose_requests_fail_fast_does_not_win(tmp_path: Path) -> None:
    base, cand = arm(tmp_path, "base", SCALES), arm(tmp_path, "cand", SCALES, failed=60)
    found = document(base, cand)
    worst = metric(found, "latency.p90")["worst"]
    assert isinstance(worst, dict)
    assert (worst["gap"], worst["detail"].partition(": ")[2].partition(":")[0]) == (
        "undefined_in_arm",
        "quantile_in_failures",
    )
    fraction = metric(found, "successful_fraction")["worst"]
    assert isinstance(fraction, dict)
    assert fraction["value"] == pytest.approx(-0.6)


def test_conditions_that_nobody_stated_leave_it_unverified(tmp_path: Path) -> None:
    runs = [run_of(tmp_path, name, [record(1, latency_ms=5.0)]) for name in ("a", "b")]
    found = document(*runs)
    assert found["compatibility"] == "unverified"
    cautions = found["cautions"]
    assert isinstance(cautions, list)
    assert any(one.startswith("service_time_only") for one in cautions)


def test_summaries_of_failed_benchmarks_have_no_latency_to_compare(tmp_path: Path) -> None:
    zero = {"mean_ttft_ms": 0.0, "p99_ttft_ms": 0.0, "completed": 0, "failed": 5, "num_prompts": 5}
    (tmp_path / "bench.json").write_text(json.dumps(zero))
    runner = CliRunner()
    for name in ("a", "b"):
        run = str(tmp_path / name)
        runner.invoke(paritrace, ["infer", "init", run], catch_exceptions=False)
        words = ["infer", "import", "client", str(tmp_path / "bench.json"), "--run", run]
        assert "Traceback" not in runner.invoke(paritrace, words, catch_exceptions=False).output
    found = document(tmp_path / "a", tmp_path / "b")
    metrics = found["metrics"]
    assert isinstance(metrics, list)
    assert [one["metric"] for one in metrics if "value" in one["worst"]] == ["successful_fraction"]
    latencies = [one for one in metrics if one["metric"].startswith("time_to_first_output")]
    assert len(latencies) == 2
    assert all("no_completed_requests" in one["worst"]["detail"] for one in latencies)


def test_a_run_with_requests_of_two_sources_asks_for_one(tmp_path: Path) -> None:
    run = run_of(tmp_path, "a", [record(1, latency_ms=5.0)])
    stream = tmp_path / "body.sse"
    stream.write_text("data: [DONE]\n\n")
    CliRunner().invoke(paritrace, ["infer", "import", "client", str(stream), "--run", str(run)], catch_exceptions=False)
    with pytest.raises(RequestError) as refused:
        compared(run, run)
    assert refused.value.code == "several_sources"
    assert "no figure" not in compared(run, run, "--source", "aiperf").stdout.partition("latency.p50")[2][:30]


def test_what_states_no_conditions_is_refused_by_name(tmp_path: Path) -> None:
    run = run_of(tmp_path, "a", [record(1, latency_ms=5.0)], conditions=KNOWN)
    for text in (
        "{",
        '{"fields": {"a": {"value": [1]}}}',
        '{"format": "other", "fields": {}}',
        '{"fields": {"a": {"value": NaN}}}',
    ):
        (run / "inference-conditions.json").write_text(text)
        with pytest.raises(EvidenceError) as refused:
            compared(run, run)
        assert refused.value.code == "bad_conditions"


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError) as refused:
        compared(tmp_path, tmp_path)
    assert refused.value.code == "no_artifact"


def test_two_scrapes_are_two_files_and_other_kinds_take_one(tmp_path: Path) -> None:
    data = Path(__file__).parents[1] / "data" / "inference"
    run = str(tmp_path / "run")
    runner = CliRunner()
    runner.invoke(paritrace, ["infer", "init", run], catch_exceptions=False)
    scrapes = [str(data / "vllm" / f"q05_c08_metrics_{name}.txt") for name in ("pre", "post")]
    told = json.loads(
        runner.invoke(
            paritrace, ["infer", "import", "metrics", *scrapes, "--run", run, "--json"], standalone_mode=False
        ).stdout
    )
    assert told["counts"] == {"deltas": 66}
    refused = runner.invoke(paritrace, ["infer", "import", "log", *scrapes, "--run", run])
    assert refused.exit_code == 2
