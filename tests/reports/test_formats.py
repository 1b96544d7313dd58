"""Formats: suffixes, what a folder gets, what a kept comparison is exported as (SU-2, SU-4, SU-7)."""

import json
from pathlib import Path

import pytest

from paritrace.cli.entry import status_of
from paritrace.files import LOCAL
from paritrace.reports.formats import FORMATS, format_of, writer_of_check, writer_of_comparison
from paritrace.reports.traces.verifying import read_back
from tests.compare.distributed_runs import Recipe, training


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of two ranks, A and B, of which B reduces its buckets in another order."""
    place = tmp_path_factory.mktemp("recorded")
    recipes = {"A": Recipe(), "B": Recipe(buckets=(("body.weight",), ("head.weight", "head.bias")))}
    for name, recipe in recipes.items():
        for rank in (0, 1):
            training(recipe, rank=rank).write(place / name, rank=rank, world_size=2)
    return place


@pytest.fixture
def runs(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that both lie in, which is the present one."""
    for name in ("A", "B"):
        (tmp_path / name).symlink_to(recorded / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_su4_every_format_has_its_writers() -> None:
    for form in FORMATS.values():
        assert form.comparison
        assert callable(writer_of_comparison(form))
        assert bool(form.check) == bool(form.check_file)
        if form.check:
            assert callable(writer_of_check(form))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", "text"),
        ("a.JSON", "json"),
        ("a.md", "markdown"),
        ("a.html", "html"),
        ("a.xml", "junit"),
        ("a.junit.xml", "junit"),
        ("a.pftrace", "pftrace"),
        ("a.parquet", "parquet"),
        ("a.csv", None),
        ("xml", None),
    ],
)
def test_su4_the_suffix_of_a_file_names_its_format(name: str, expected: str | None) -> None:
    found = format_of(Path(name))
    assert (None if found is None else found.name) == expected


def test_su4_a_folder_names_every_file_and_an_export_of_it_is_the_same_bytes(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["compare", "A", "B", "-o", "all"]) == 0
    manifest = json.loads((runs / "all" / "manifest.json").read_bytes())
    named = {entry["path"] for entry in manifest["files"]}
    assert {"traces/rank-0.pftrace", "traces/rank-1.pftrace", "report.md", "report.junit.xml"} <= named
    there = {path.relative_to(runs / "all").as_posix() for path in (runs / "all").rglob("*") if path.is_file()}
    assert there == named | {"manifest.json"}
    reports = json.loads((runs / "all" / "comparison.json").read_bytes())["reports"]
    assert (reports["pftrace"], reports["junit"]) == ("traces", "report.junit.xml")

    options = [f"--format={name}" for name in ("pftrace", "markdown", "junit", "json", "text", "parquet")]
    assert status_of(["export", "all", "-o", "again", *options]) == 0
    for name in ("comparison.json", "report.junit.xml", "report.md"):
        assert (runs / "again" / name).read_bytes() == (runs / "all" / name).read_bytes()
    for rank in (0, 1):
        again = (runs / "again" / f"rank-{rank}.pftrace").read_bytes()
        assert again == (runs / "all" / "traces" / f"rank-{rank}.pftrace").read_bytes()
    assert "wrote again/rank-1.pftrace" in capsys.readouterr().out


def test_su8_an_export_of_a_run_says_what_it_leaves_out(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["export", "A", "-o", "cut.pftrace", "--rank", "1", "--steps", "0:1", "--json"]) == 0
    (written,) = json.loads(capsys.readouterr().out)["files"]
    (whole,) = read_back(runs / "cut.pftrace", files=LOCAL)
    assert written["slices"] == whole.slices > 0
    assert written["left_out"] == whole.left_out
    assert whole.left_out["other_steps"] > 0
    assert status_of(["export", "A", "-o", "few.pftrace", "--max-events", "2"]) == 0
    assert "left out (--max-events)" in capsys.readouterr().out
    assert [part.slices + part.instants for part in read_back(runs / "few.pftrace", files=LOCAL)] <= [8, 8]
    assert status_of(["export", "--verify", "few.pftrace"]) == 0
    assert capsys.readouterr().out.count("whole: ") == 2


def test_su8_chromes_json_says_that_it_is_lossy(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["export", "A", "-o", "a.chrome.json", "--rank", "0"]) == 0
    document = json.loads((runs / "a.chrome.json").read_bytes())
    assert "lossy" in document["otherData"]["paritrace"]
    phases = [event["ph"] for event in document["traceEvents"]]
    assert phases.count("B") == phases.count("E") > 0
    assert document["traceEvents"][-1]["name"] == "paritrace.complete"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["export", "A"], "no_place_for_format"),
        (["export", "A", "-o", "x.csv"], "no_such_format"),
        (["export", "A", "-o", "out", "--format", "markdown"], "no_such_format"),
        (["export", "A", "-o", "out", "--rank", "7"], "no_such_rank"),
        (["export", "A", "-o", "x.chrome.json"], "one_rank_only"),
        (["export", "nowhere", "-o", "out"], "not_found"),
        (["check", "A", "-o", "x.parquet"], "no_such_format"),
        (["check", "A", "-o", "x.csv"], "no_such_format"),
        (["check", "A", "--format", "pftrace"], "no_place_for_format"),
    ],
)
def test_su4_what_cannot_be_written_is_refused_and_nothing_is_left(
    runs: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: str
) -> None:
    before = {path for path in runs.rglob("*") if path.is_file()}
    assert status_of([*arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code
    assert {path for path in runs.rglob("*") if path.is_file()} == before


def test_su4_a_check_writes_a_folder_and_prints_one_format(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["check", "A", "-o", "checked"]) == 0
    names = {path.relative_to(runs / "checked").as_posix() for path in (runs / "checked").rglob("*") if path.is_file()}
    assert {"check.json", "check.md", "check.junit.xml", "traces/rank-0.pftrace", "traces/rank-1.pftrace"} <= names
    capsys.readouterr()
    assert status_of(["check", "A", "--format", "markdown"]) == 0
    assert capsys.readouterr().out == (runs / "checked" / "check.md").read_text()
