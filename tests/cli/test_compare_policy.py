"""`compare --policy` and `--allow`: verdicts, exit statuses, and where they are shown (CP-13, SU-3)."""

import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from paritrace.cli.allowances import judgement, status_of_comparison
from paritrace.cli.entry import status_of
from paritrace.compare.result import Comparison, EnvelopeUsed, Group, Mark, SideCoverage
from paritrace.compare.settings import Settings
from tests.compare.runs import compared, training
from tests.reports.test_first_screen import assert_within_bounds

POLICY = """
format = "paritrace-policy"
version = "1.0"
name = "port"

[[rules]]
kind = "{kind}"
{more}

[[rules]]
kind = "all_ranks"
"""


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str]:
    return str(training().write(tmp_path / "A")), str(training(late=1).write(tmp_path / "B"))


def written(place: Path, kind: str, more: str = "") -> str:
    path = place / "policy.toml"
    path.write_text(POLICY.format(kind=kind, more=more))
    return str(path)


@pytest.mark.parametrize(
    ("kind", "more", "verdict", "status"),
    [
        ("step_value", "relative = 0.1", "pass", 0),
        ("bits_agree", "", "fail", 1),
        ("inside_envelope", "", "undetermined", 3),
    ],
)
def test_cp13_the_verdict_decides_the_exit_status(
    runs: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    more: str,
    verdict: str,
    status: int,
) -> None:
    rules = written(tmp_path, kind, more)
    assert status_of(["compare", *runs, "--policy", rules, "--exit-code", "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    found = msgspec.convert(document, type=Comparison)
    assert found.policy is not None
    assert (document["verdict"], found.policy.name, len(found.policy.rules)) == (verdict, "port", 2)
    assert status_of(["compare", *runs, "--policy", rules]) == 0
    screen = capsys.readouterr().out
    assert_within_bounds(screen)
    (place,) = [n for n, line in enumerate(screen.splitlines()) if line.startswith("[rules]")]
    assert f"policy port: {verdict}" in screen.splitlines()[place]
    assert place >= len(screen.splitlines()) - 4  # at the end, before the place where it was kept
    assert screen.startswith("[F1]")


def test_cp13_without_a_policy_nothing_is_evaluated(runs: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    status_of(["compare", *runs])
    assert "[rules]" not in capsys.readouterr().out
    assert status_of(["explain", runs[1], "rules"]) == 0
    assert "not_evaluated" in capsys.readouterr().out


def test_p9_every_rule_is_explained(runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status_of(["compare", *runs, "--policy", written(tmp_path, "bits_agree", 'name = "all bits"')])
    capsys.readouterr()
    assert status_of(["explain", runs[1], "rules"]) == 0
    told = capsys.readouterr().out
    assert "1. all bits: fail; 16 checked, 6 break it, 0 cannot be told" in told
    assert "at rank 0, step 1, forward, scaled_tanh in model, baseline:21, candidate:21" in told
    assert "2. all_ranks: pass; 1 of 1 ranks" in told


def test_p3_another_policy_is_another_result(runs: tuple[str, str], tmp_path: Path) -> None:
    for kind in ("bits_agree", "all_ranks"):
        status_of(["compare", *runs, "--policy", written(tmp_path, kind)])
    assert len(list(Path(runs[1]).glob("comparisons/*/*/manifest.json"))) == 2


def test_cp13_every_problem_of_a_policy_is_printed(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = written(tmp_path, "step_value", 'relativ = 1\nof = "lost"')
    assert status_of(["compare", *runs, "--policy", rules, "--json"]) == 2
    output = capsys.readouterr()
    assert len(json.loads(output.out)["error"]["details"]) == 2
    assert "    - rules[0].relativ: there is no such key; relative is meant?" in output.err


# --- --allow inside-envelope ------------------------------------------------------------------------------------------


@pytest.fixture
def differing(tmp_path: Path) -> Comparison:
    found = compared(tmp_path, training(), training(late=1), settings=Settings()).result
    complete = {side: replace(coverage, complete=True) for side, coverage in found.coverage.items()}
    return replace(found, coverage=complete)


def judged(of: Comparison, *, ratio: float | None, mark: str = "~", beyond: int = 0) -> Comparison:
    """The comparison as an envelope would have left it."""
    findings = tuple(replace(finding, ratio=ratio, reached=1.0) for finding in of.findings)
    ladder = {rung: Mark(mark) if was is Mark.BEYOND else was for rung, was in of.ladder.items()}
    used = EnvelopeUsed("perturbed baselines", 8, 0.11, judged=10, beyond=beyond, largest=ratio)
    return replace(of, findings=findings, ladder=ladder, envelope=used)


def status(of: Comparison, *allow: str) -> int:
    return status_of_comparison(of, judgement(exit_code=True, allow=allow, exit_zero=False, envelope=True))


def test_cp13_inside_the_envelope_is_a_difference_unless_it_is_allowed(differing: Comparison) -> None:
    inside = judged(differing, ratio=0.5)
    assert status(inside) == 1
    assert status(inside, "inside-envelope") == 0
    assert status(replace(inside, coverage=_open(inside)), "inside-envelope") == 3


def _open(of: Comparison) -> dict[str, SideCoverage]:
    return {side: replace(coverage, complete=False) for side, coverage in of.coverage.items()}


def test_cp13_what_is_beyond_stays_a_difference(differing: Comparison) -> None:
    assert status(judged(differing, ratio=7.0), "inside-envelope") == 1
    assert status(judged(differing, ratio=0.5, mark="X"), "inside-envelope") == 1
    assert status(judged(differing, ratio=0.5, beyond=1), "inside-envelope") == 1
    collective = [replace(f, place=replace(f.place, collective="reduced")) for f in differing.findings]
    assert status(replace(judged(differing, ratio=0.5), findings=tuple(collective)), "inside-envelope") == 1


def test_cp13_what_no_envelope_judged_is_undetermined(differing: Comparison) -> None:
    assert status(differing, "inside-envelope") == 3
    assert status(judged(differing, ratio=None), "inside-envelope") == 3
    assert any(finding.place.group is Group.ORIGINATES for finding in differing.findings)


def test_cp13_equal_runs_need_no_envelope(tmp_path: Path) -> None:
    same = compared(tmp_path, training(), training(), settings=Settings()).result
    same = replace(same, coverage={side: replace(each, complete=True) for side, each in same.coverage.items()})
    assert status(same, "inside-envelope") == 0


def test_su3_both_allowances_together(differing: Comparison) -> None:
    inside = judged(differing, ratio=0.5)
    counts = replace(inside.counts, undetermined_candidate=3)
    assert status(replace(inside, counts=counts), "inside-envelope") == 3
    assert status(replace(inside, counts=counts), "inside-envelope", "undetermined=3") == 0
