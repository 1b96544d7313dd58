"""`paritrace attempts`: the reports, their formats and exit statuses (AT-17, AT-18)."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from paritrace import attempts
from paritrace.attempts.api import load
from paritrace.attempts.manifest import Evaluation, Execution, Primary, Stop, StopKind
from paritrace.cli.attempts import record
from paritrace.cli.entry import paritrace, status_of
from paritrace.reports.documents import encoded
from tests.attempts.written import FAIL, PASS, UNIT_TESTS, attempt, manifest
from tests.conftest import Golden


def called(*arguments: str) -> Result:
    return CliRunner().invoke(paritrace, ["attempts", *arguments], catch_exceptions=False, standalone_mode=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two configurations at four tasks, one attempt lost on each side, one verdict left out by its tool."""
    lost: dict[str, Any] = {
        "accounting": None,
        "execution": Execution.FAILED,
        "stop": Stop(StopKind.ERROR, "ApiError"),
        "evaluations": (Evaluation(UNIT_TESTS, FAIL, counts=False),),
    }
    listed = [attempt(f"alpha-t{n}-1", PASS if n < 3 else FAIL, duration_seconds=float(n)) for n in range(3)]
    listed += [attempt("alpha-t3-1", **lost), attempt("beta-t0-1", None, present=False, accounting=None)]
    listed += [attempt(f"beta-t{n}-1", FAIL if n < 3 else PASS, fields={"model": "m"}) for n in range(1, 4)]
    path = tmp_path / "m.json"
    path.write_bytes(msgspec.json.encode(manifest(listed, primary=Primary("alpha", "beta"))))
    return path


def test_at_17_text_of_a_comparison(place: Path, golden: Golden) -> None:
    golden("attempts/comparison.txt", _steady(called("compare", str(place)).output))


def test_at_17_text_with_details(place: Path, golden: Golden) -> None:
    golden("attempts/details.txt", _steady(called("summarize", str(place), "--details").output))


def test_at_17_markdown(place: Path, golden: Golden) -> None:
    golden("attempts/comparison.md", _steady(called("compare", str(place), "--format", "markdown").output))


def test_at_17_html_is_one_file_that_asks_for_nothing(place: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    called("compare", str(place), "-o", str(report))
    text = report.read_text(encoding="utf-8")
    assert "alpha - beta: claim: undetermined" in text
    assert "src=" not in text
    assert "http" not in text.partition("<main")[2]


def test_at_17_json_is_the_same_bytes_and_the_published_format(place: Path) -> None:
    from paritrace.attempts.result import AttemptsComparison, Summary

    first, second = (called("compare", str(place), "--json").output for _ in range(2))
    assert first == second
    assert msgspec.json.decode(first, type=AttemptsComparison).pairs[0].baseline == "alpha"
    summary = called("summarize", str(place), "--json", "--details").output
    assert msgspec.json.decode(summary, type=Summary).details is not None


def test_at_17_exit_statuses(place: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate.toml"
    gate.write_text('[[rules]]\nkind = "complete"\n')
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    base = ["attempts", "summarize"]
    assert status_of([*base, str(place)]) == 0
    assert status_of([*base, str(place), "--require-complete"]) == 3
    assert status_of([*base, str(place), "--gate", str(gate)]) == 1
    assert status_of([*base, str(bad)]) == 2
    assert status_of(["attempts", "compare", str(place), "--baseline", "nobody"]) == 2
    assert status_of(["attempts", "explain", str(place), "nothing"]) == 2


def test_at_17_explain_as_text_and_json(place: Path) -> None:
    text = called("explain", str(place), "alpha.states.execution_failed").output
    assert text.splitlines()[1].strip() == "alpha-t3-1: execution_failed; stopped: error"
    told = json.loads(called("explain", str(place), "beta.costs", "--json").output)
    assert [one["attempt_id"] for one in told["evidence"]] == ["beta-t0-1", "beta-t1-1", "beta-t2-1", "beta-t3-1"]


def test_at_8_a_rate_card_prices_beside(place: Path, tmp_path: Path) -> None:
    card = tmp_path / "card.toml"
    card.write_text(
        'format="paritrace-rate-card"\nformat_version="1.0"\nid="card"\nversion="1"\n[models.m]\ninput=1.0\noutput=2.0\n'
    )
    found = json.loads(called("summarize", str(place), "--rate-card", str(card), "--json").output)
    alpha = found["configurations"][0]
    assert alpha["costs"][0]["sum"]["observed_sum"] == 1.5
    assert alpha["repriced"]["sum"]["observed_sum"] == pytest.approx(3 * 120 / 1e6)
    assert alpha["repriced"]["sum"]["coverage"]["observed"] == 3


def test_su_12_hostile_names_move_no_cursor_and_are_no_markup(tmp_path: Path) -> None:
    name = "a\x1b[2J<script>|\u202e"
    one = attempt("a-t1-1", attempt_id=name, task_id=name, configuration_id=name, fields={name: name})
    path = tmp_path / "m.json"
    path.write_bytes(msgspec.json.encode(manifest([one])))
    for form in ("text", "markdown", "html"):
        output = called("summarize", str(path), "--details", "--format", form).output
        assert "\x1b" not in output
        assert "\u202e" not in output
        if form != "text":
            assert "<script>|" not in output


def test_at_17_without_scipy_the_mend_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert status_of(["attempts", "summarize", str(place)]) == 2


def _steady(text: str) -> str:
    """The report without the versions and the digest, which change by themselves."""
    return "\n".join(line for line in text.splitlines() if "read by" not in line and "sha256" not in line) + "\n"


@pytest.mark.parametrize(("names", "few"), [((), "0 configurations"), (("a",), "1 configuration")])
def test_at_14_a_comparison_of_less_than_two_says_that_it_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...], few: str
) -> None:
    head = {"format": "paritrace-attempts", "version": "1.0", "attempts": []}
    path = tmp_path / "m.json"
    path.write_text(json.dumps({**head, "configurations": [{"id": name} for name in names]}))
    assert status_of(["attempts", "compare", str(path), "--format", "text"]) == 0
    assert capsys.readouterr().out.startswith(f"nothing is compared\n===================\n  - the manifest has {few}:")
    assert status_of(["attempts", "summarize", str(path), "--require-complete"]) == 3


def test_at_14_looks_are_recorded_beside_the_manifest_and_said_where_they_cannot_be(place: Path) -> None:
    first = called("compare", str(place), "--json")
    ledger = place.with_name("m.json.looks.jsonl")
    assert len(ledger.read_text().splitlines()) == 1
    called("summarize", str(place))
    assert called("compare", str(place), "--json").stdout == first.stdout  # the same look, the same bytes
    assert len(ledger.read_text().splitlines()) == 1


def test_at_14_a_look_that_cannot_be_recorded_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load(place)
    shutil.rmtree(place.parent)
    record(loaded)
    assert "this look at results is not recorded" in capsys.readouterr().err


def test_at_19_python_gives_the_records_that_the_command_prints(place: Path) -> None:
    loaded = attempts.load(place)
    printed = called("summarize", str(place), "--details", "--json").stdout_bytes
    assert printed.strip() == encoded(attempts.summarize(loaded, details=True)).strip()
    assert called("compare", str(place), "--json").stdout_bytes.strip() == encoded(attempts.compare(loaded)).strip()
    told = called("explain", str(place), "alpha.costs", "--json").stdout_bytes
    assert told.strip() == encoded(attempts.explain(loaded, "alpha.costs")).strip()
