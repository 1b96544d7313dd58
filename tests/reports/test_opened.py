"""`paritrace.open` in a notebook: what a path is, columns for every library, a cell that is safe to show (SU-14)."""

import sys
from collections import Counter
from pathlib import Path

import pytest

import paritrace
from paritrace.compare.engine import compare
from paritrace.errors import EvidenceError, HostError
from paritrace.files import LOCAL
from paritrace.reports.keeping import Keeping, keep
from paritrace.reports.opened import Comparison, Run
from paritrace.runs.reading import open_run
from tests.compare.runs import training
from tests.reports.html.pages import seen
from tests.reports.html.test_pages import HOSTILE


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, `a` and `b`, and their comparison in `out`."""
    place = tmp_path_factory.mktemp("opened")
    a, b = (open_run(made.write(place / name)) for name, made in (("a", training()), ("b", training(scale=2.002))))
    found = compare(a, b)
    keep(Keeping(found.result, found.rows, (), made_by="a test"), place / "out", files=LOCAL)
    return place


@pytest.mark.parametrize("name", ["out", "out/comparison.json", "out/manifest.json"])
def test_su14_a_kept_comparison_is_opened_by_its_folder_or_a_file_in_it(place: Path, name: str) -> None:
    found = paritrace.open(place / name)
    assert isinstance(found, Comparison)
    assert found.result.findings[0].id == "F1"
    assert found.to_arrow().num_rows == found.result.counts.calls_baseline + found.result.counts.calls_candidate
    assert repr(found).startswith("[F1]")


def test_su14_a_run_is_opened_with_its_calls_in_order(place: Path) -> None:
    found = paritrace.open(place / "a")
    assert isinstance(found, Run)
    table = found.to_arrow()
    comparison = paritrace.open(place / "out")
    assert isinstance(comparison, Comparison)
    assert table.num_rows == comparison.result.counts.calls_baseline
    first = table.slice(0, 2).to_pylist()
    assert [(row["step"], row["phase"], row["module"]) for row in first] == [
        (0, "forward", "model"),
        (0, "forward", "fc"),
    ]
    assert found.run_id in repr(found)


def test_su14_a_cell_shows_the_finding_and_its_ladder_without_a_script(place: Path) -> None:
    comparison, run = paritrace.open(place / "out"), paritrace.open(place / "a")
    cell = seen(comparison._repr_html_())
    assert isinstance(comparison, Comparison)
    assert comparison.result.findings[0].sentence in cell.text
    assert "weights+1" in cell.text
    other = seen(run._repr_html_())
    assert isinstance(run, Run)
    assert run.summary.sessions[0].session_id in other.text
    for found in (cell, other):
        assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in found.elements}


def test_su12_a_hostile_title_is_text_in_a_cell(place: Path) -> None:
    from msgspec.structs import replace

    found = paritrace.open(place / "a")
    assert isinstance(found, Run)
    found.summary = replace(found.summary, envelope=replace(found.summary.envelope, title=HOSTILE))
    assert "img" not in {tag for tag, _ in seen(found._repr_html_()).elements}


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_su14_a_missing_package_is_one_line_with_its_pip_command(
    place: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(HostError) as refused:
        getattr(paritrace.open(place / "out"), f"to_{package}")()
    assert (refused.value.code, refused.value.fix.split(";")[0]) == ("missing_extra", f"pip install {package}")


@pytest.mark.slow
def test_su14_the_calls_are_a_pandas_frame_as_they_are_an_arrow_table(place: Path) -> None:
    for name in ("a", "out"):
        found = paritrace.open(place / name)
        table, frame = found.to_arrow(), found.to_pandas()
        assert list(frame.columns) == table.column_names
        assert frame["function"].tolist() == table["function"].to_pylist()
        assert frame.groupby("step").size().to_dict() == Counter(table["step"].to_pylist())


@pytest.mark.slow
def test_su14_the_calls_are_a_polars_frame_as_they_are_an_arrow_table(place: Path) -> None:
    for name in ("a", "out"):
        found = paritrace.open(place / name)
        table, frame = found.to_arrow(), found.to_polars()
        assert frame.columns == table.column_names
        assert frame.to_dicts() == table.to_pylist()
        assert dict(frame["phase"].value_counts().iter_rows()) == Counter(table["phase"].to_pylist())


def test_su14_the_report_can_be_written_from_what_was_kept(place: Path, tmp_path: Path) -> None:
    found = paritrace.open(place / "out")
    assert isinstance(found, Comparison)
    found.to_html(tmp_path / "r.html")
    text = seen((tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert "line 5" in text, "the source is read from the run"
    assert "pairs and unpaired calls" in text


def test_what_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError) as refused:
        paritrace.open(tmp_path)
    assert refused.value.code == "not_a_run"


def test_a_result_without_its_calls_says_so(place: Path, tmp_path: Path) -> None:
    result = paritrace.open(place / "out")
    assert isinstance(result, Comparison)
    keep(Keeping(result.result, (), (), "a test", formats=("json",)), tmp_path / "out", files=LOCAL)
    found = paritrace.open(tmp_path / "out")
    with pytest.raises(EvidenceError, match="cannot be read"):
        found.to_arrow()
    assert "[F1]" in found._repr_html_()
