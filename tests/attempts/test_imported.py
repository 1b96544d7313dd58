"""What other tools left, imported and summarised: real files end to end (AT-12, AT-14, AT-16, D-05, D-07)."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from paritrace.cli.entry import paritrace

DATA = Path(__file__).parents[1] / "data" / "attempts"
A, B = DATA / "inspect" / "inspect-a-errors.eval", DATA / "inspect" / "inspect-b-errors.json"
SUCCESS = DATA / "inspect" / "06_inspect_evalset_success.json"
ERROR = DATA / "inspect" / "07_inspect_evalset_error_same_ids.json"


def printed(*arguments: str | Path) -> str:
    words = ["attempts", *map(str, arguments)]
    return CliRunner().invoke(paritrace, words, catch_exceptions=False, standalone_mode=False).stdout


def imported(folder: Path, tool: str, *paths: Path) -> Path:
    manifest = folder / "m.json"
    printed("import", tool, *paths, "-o", manifest)
    return manifest


def document(*arguments: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(*arguments, "--json"))
    return found


def test_at_16_a_harbor_job_says_what_it_is_sure_of(tmp_path: Path) -> None:
    manifest = imported(tmp_path, "harbor", DATA / "harbor" / "alpha")
    (alpha,) = document("summarize", manifest)["configurations"]
    assert (alpha["attempts"]["observed"], alpha["attempts"]["expected"]) == (12, 12)
    (judge,) = alpha["evaluators"]
    assert judge["states"] == {"evaluated_fail": 6, "evaluated_pass": 1, "execution_failed": 5}
    fractions = judge["fractions"]
    assert (fractions["passes"], fractions["num_evaluated"], fractions["num_attempts"]) == (1, 7, 12)
    assert fractions["worst_case"] == pytest.approx([1 / 12, 1 / 2])
    (cost,) = alpha["costs"]
    assert (cost["sum"]["coverage"]["observed"], cost["sum"]["coverage"]["expected"]) == (6, 12)
    assert (cost["sum"]["high"], cost["sum"]["state"]) == (None, "incomplete")
    assert alpha["gaps"]["retry_destroyed"] == 6
    assert {one["k"]: one["pass_at_k"] for one in judge["pass_at_k"]}[2] == pytest.approx(1 / 3)  # as Harbor's own


def test_at_16_the_text_of_a_harbor_job(tmp_path: Path) -> None:
    text = printed("summarize", imported(tmp_path, "harbor", DATA / "harbor" / "alpha"))
    for line in (
        "12 planned, 12 found (complete)",
        "1 of 7 = 0.143",
        "1 of 12 = 0.083",
        "[0.083, 0.500] of 12",
        ">= 0.030525 USD (6 of 12; cost_absent 6",
        "retries of alpha whose evidence the tool destroyed: 6",
    ):
        assert line in text


def test_at_14_two_inspect_logs_are_undetermined_with_their_lost_attempts(tmp_path: Path) -> None:
    (pair,) = document("compare", imported(tmp_path, "inspect", A, B))["pairs"]
    assert pair["bounds"] == pytest.approx([-4 / 18, 3 / 18])
    assert pair["difference"]["value"] == pytest.approx(-1 / 12)
    assert (pair["difference"]["interval"]["low"], pair["difference"]["interval"]["high"]) == pytest.approx(
        (-0.267, 0.100), abs=5e-4
    )
    assert pair["claim"] == "undetermined"
    assert [len(one) for one in pair["lost"].values()] == [4, 3]
    lost = [one.partition("@")[0].removeprefix("arithmetic/") for names in pair["lost"].values() for one in names]
    assert lost == ["t02/3", "t03/2", "t05/1", "t05/2", "t01/3", "t05/2", "t06/1"]
    (tip,) = pair["tipping"]
    assert tip["sentence"] == "the sign flips if 1 of the 4 missing attempts of inspect-a-errors passed"


def test_d_07_both_fractions_of_an_inspect_log_stand_beside_each_other(tmp_path: Path) -> None:
    (one,) = document("summarize", imported(tmp_path, "inspect", A))["configurations"]
    fractions = one["evaluators"][0]["fractions"]
    assert fractions["evaluated_only"] == pytest.approx(3 / 14)
    assert fractions["missing_as_failed"] == pytest.approx(3 / 18)
    assert one["evaluators"][0]["mean_over_tasks"]["value"] == pytest.approx(0.1944, abs=5e-5)
    assert one["evaluators"][0]["mean_over_attempts"]["value"] == pytest.approx(0.2143, abs=5e-5)


def test_d_05_two_logs_of_one_id_success_and_error_are_a_conflict(tmp_path: Path) -> None:
    for order in ((SUCCESS, ERROR), (ERROR, SUCCESS)):
        summary = document("summarize", imported(tmp_path, "inspect", *order))
        assert {one["code"] for one in summary["warnings"]} >= {"conflicting_records"}
        for one in summary["configurations"]:
            assert set(one["evaluators"][0]["states"]) <= {"not_evaluated"}
            assert one["tokens"]["input_tokens"]["coverage"]["observed"] == 0


def test_p_9_a_figure_of_an_imported_job_leads_to_file_and_line(tmp_path: Path) -> None:
    manifest = imported(tmp_path, "harbor", DATA / "harbor" / "alpha")
    evidence = document("explain", manifest, "alpha.costs")["evidence"]
    assert len(evidence) == 12
    place = next(one for item in evidence for one in item["places"] if one["pointer"] == "/agent_result/cost_usd")
    line = (tmp_path / place["path"]).read_text(encoding="utf-8").splitlines()[place["line"] - 1]
    assert '"cost_usd"' in line
