"""`attempts import`, `attempts diverge` and `compare DIR DIR`, as a person runs them (AT-16, AT-22, AT-23)."""

import json
import shutil
from pathlib import Path

import pytest

from paritrace.attempts.importers.importing import TOOLS
from paritrace.cli import attempts_import
from paritrace.cli.entry import status_of
from paritrace.cli.output import ExitStatus
from tests.attempts.importers.evidence import ALPHA, DATA, INSPECT_A, INSPECT_B

Captured = pytest.CaptureFixture[str]


def test_the_command_knows_the_tools_that_there_are() -> None:
    assert tuple(TOOLS) == attempts_import.TOOLS


def test_at_16_a_harbor_job_is_imported_and_summarised(tmp_path: Path, capsys: Captured) -> None:
    manifest = tmp_path / "m.json"
    assert status_of(["attempts", "import", "harbor", str(ALPHA), "-o", str(manifest)]) == ExitStatus.DONE
    assert "alpha: 12 attempts planned, 12 found" in capsys.readouterr().out
    assert status_of(["attempts", "summarize", str(manifest)]) == ExitStatus.DONE
    screen = capsys.readouterr().out
    for said in (
        "12 planned, 12 found",
        "evaluated_fail 6, evaluated_pass 1, execution_failed 5",
        "1 of 7 = 0.143",
        "1 of 12 = 0.083",
        "[0.083, 0.500] of 12",
        ">= 0.030525 USD (6 of 12",
        "retries of alpha whose evidence the tool destroyed: 6",
    ):
        assert said in screen
    assert "no attempt accounts for" not in screen  # rounding of a sum of money is no difference


def test_at_14_two_inspect_logs_are_imported_and_compared(tmp_path: Path, capsys: Captured) -> None:
    manifest = tmp_path / "m.json"
    names = ["--configuration", "a", "--configuration", "b"]
    assert (
        status_of(["attempts", "import", "inspect", str(INSPECT_A), str(INSPECT_B), "-o", str(manifest), *names]) == 0
    )
    capsys.readouterr()
    assert status_of(["attempts", "compare", str(manifest), "--json"]) == ExitStatus.DONE
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert pair["claim"] == "undetermined"
    assert [round(bound, 3) for bound in pair["bounds"]] == [-0.222, 0.167]
    assert [len(pair["lost"][name]) for name in ("a", "b")] == [4, 3]
    assert pair["tipping"][0]["sentence"] == "the sign flips if 1 of the 4 missing attempts of a passed"


def test_at_16_explain_leads_from_a_figure_to_a_member_of_the_archive(tmp_path: Path, capsys: Captured) -> None:
    manifest = tmp_path / "m.json"
    status_of(["attempts", "import", "inspect", str(INSPECT_A), "-o", str(manifest), "--configuration", "a"])
    capsys.readouterr()
    assert status_of(["attempts", "explain", str(manifest), "a.tokens.output_tokens"]) == ExitStatus.DONE
    assert "samples/t01_epoch_1.json" in capsys.readouterr().out


def test_at_16_what_was_refused_is_told_on_stderr_and_stands_in_the_manifest(tmp_path: Path, capsys: Captured) -> None:
    log = tmp_path / "nan.json"
    log.write_bytes((DATA / "inspect" / "05_inspect_log_with_nan.txt").read_bytes())
    assert status_of(["attempts", "import", "inspect", str(log)]) == ExitStatus.DONE
    captured = capsys.readouterr()
    assert captured.err.endswith("nan.json, line 41: NaN is not JSON: the value is not read\n")
    assert json.loads(captured.out)["gaps"][0]["reason"] == "result_invalid"


def test_at_16_a_manifest_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("1.json", "2.json"):
        status_of(["attempts", "import", "harbor", str(ALPHA), "-o", str(tmp_path / name)])
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()


def test_at_2_a_trial_that_is_there_twice_is_counted_once(tmp_path: Path, capsys: Captured) -> None:
    job = Path(shutil.copytree(ALPHA, tmp_path / "alpha"))
    shutil.copytree(job / "double-1__9k28ehG", job / "double-1__9k28ehG-copy")
    assert status_of(["attempts", "import", "harbor", str(job), "-o", str(tmp_path / "m.json")]) == ExitStatus.DONE
    assert "alpha: 12 attempts planned, 12 found" in capsys.readouterr().out


def test_at_22_compare_takes_two_log_directories(capsys: Captured) -> None:
    assert status_of(["compare", str(INSPECT_A), str(INSPECT_B)]) == ExitStatus.DONE
    screen = capsys.readouterr().out
    assert screen.startswith("inspect-a-errors - inspect-b-errors: claim: undetermined")
    assert "[-0.222, +0.167]" in screen
    assert "trajectories: 6 of 6 tasks part" in screen


def test_at_22_compare_writes_its_document_and_its_status(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "r.json"
    asked = ["compare", str(INSPECT_A), str(INSPECT_B), "-o", str(out), "--exit-code"]
    assert status_of(asked) == ExitStatus.UNDETERMINED
    assert json.loads(out.read_bytes())["format"] == "paritrace-attempts-directories"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("options", [["--ranks", "0"], ["--policy", "p.toml"], ["--format", "junit"]])
def test_at_22_options_that_mean_nothing_for_attempts_are_refused(options: list[str], capsys: Captured) -> None:
    assert status_of(["compare", str(INSPECT_A), str(INSPECT_B), *options]) == ExitStatus.TROUBLE
    assert "[not_for_attempts]" in (said := capsys.readouterr().err) or "[no_such_format]" in said


def test_at_23_diverge_shows_many_tasks_or_one(capsys: Captured) -> None:
    assert status_of(["attempts", "diverge", str(INSPECT_A), str(INSPECT_B)]) == ExitStatus.DONE
    assert capsys.readouterr().out.startswith("the trajectories of 6 of 6 tasks part (6 in an answer)")
    assert status_of(["attempts", "diverge", str(INSPECT_A), str(INSPECT_B), "--task", "t01"]) == ExitStatus.DONE
    assert capsys.readouterr().out.startswith("arithmetic/t01: they part at the first step: the answers differ")


def test_at_23_diverge_json_keeps_values_to_itself(capsys: Captured) -> None:
    asked = ["attempts", "diverge", str(INSPECT_A), str(INSPECT_B), "--task", "t01", "--json"]
    assert status_of(asked) == ExitStatus.DONE
    plain = json.loads(capsys.readouterr().out)
    (argument,) = plain["tasks"][0]["parting"]["a"]["arguments"]
    assert argument["text"] is None
    assert status_of([*asked, "--values"]) == ExitStatus.DONE
    assert json.loads(capsys.readouterr().out)["tasks"][0]["parting"]["a"]["arguments"][0]["text"] == "4"


def test_at_23_where_nothing_is_a_trajectory_it_is_said(capsys: Captured) -> None:
    assert status_of(["attempts", "diverge", str(ALPHA), str(ALPHA)]) == ExitStatus.TROUBLE
    assert "[no_trajectories]" in capsys.readouterr().err


def test_at_14_importing_again_keeps_what_a_person_declared(tmp_path: Path, capsys: Captured) -> None:
    place = tmp_path / "m.json"
    command = ["attempts", "import", "inspect", str(INSPECT_A), str(INSPECT_B), "-o", str(place)]
    assert status_of(command) == ExitStatus.DONE
    plain = json.loads(place.read_bytes())
    names = [one["id"] for one in plain["configurations"]]
    plain["primary"] = {"baseline": names[0], "candidate": names[1], "test": "sign_flip"}
    place.write_text(json.dumps(plain))
    capsys.readouterr()
    assert status_of(command) == ExitStatus.DONE
    assert "kept from the m.json that was there: primary" in capsys.readouterr().err
    assert json.loads(place.read_bytes())["primary"]["test"] == "sign_flip"


def test_a_hostile_name_does_no_harm_to_the_screen(tmp_path: Path, capsys: Captured) -> None:
    log = tmp_path / "\x1b[31mred\n.json"
    log.write_bytes(INSPECT_B.read_bytes())
    assert status_of(["attempts", "import", "inspect", str(log), "-o", str(tmp_path / "my m.json")]) == ExitStatus.DONE
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert len(told.splitlines()) == 3
    assert told.splitlines()[-1] == f"next: paritrace attempts summarize '{tmp_path}/my m.json'"
