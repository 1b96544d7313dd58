"""GitHub: ten annotations of a kind, nothing ends its line, the summary stays within a mebibyte (SU-7, SU-14)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.cli.entry import status_of
from paritrace.reports.github.annotations import (
    MOST,
    Annotation,
    Kind,
    command,
    commands,
    of_comparison,
)
from paritrace.reports.github.summary import LIMIT_BYTES, within
from tests.compare import check_records as records
from tests.reports import comparisons
from tests.reports.written_runs import write_run


def nowhere(_file: str) -> str | None:
    return None


def test_su14_nothing_in_an_annotation_ends_it_or_begins_another() -> None:
    text = command(Annotation(Kind.ERROR, "a:b,c\n::error::x", "100%\r\n::set-output name=x::y", "dir,a:b.py", 3))
    assert "\n" not in text
    assert "\r" not in text
    head, _, rest = text.removeprefix("::").partition("::")
    assert head.startswith("error file=dir%2Ca%3Ab.py,line=3,title=a%3Ab%2Cc")
    assert rest.startswith("100%25")


def test_su7_at_most_ten_of_a_kind_and_the_rest_counted() -> None:
    many = [Annotation(Kind.ERROR, "t", f"{number}") for number in range(25)] + [Annotation(Kind.NOTICE, "t", "n")]
    found = list(commands(many))
    assert sum(line.startswith("::error ") for line in found) == MOST
    assert "16 more of 25 errors are not shown here" in found[MOST - 1]
    assert sum(line.startswith("::notice ") for line in found) == 1
    assert len(list(commands(many[:MOST]))) == MOST


def test_su14_a_finding_stands_at_the_candidates_line_with_what_is_known_of_it() -> None:
    parted = comparisons.parted()
    file = parted.findings[0].place.candidate_site.rpartition(":")[0]
    here = {file: f"src/{file}"}.get
    first = of_comparison(parted, fails=False, here=here)[0]
    assert (first.kind, first.file) == (Kind.WARNING, f"src/{file}")  # bits only: nobody says that it is too much
    assert first.line > 0
    assert of_comparison(parted, fails=True, here=here)[0].kind is Kind.ERROR
    inside = replace(parted.findings[0], ratio=0.5, reached=1.0, strength="inside")
    beyond = replace(parted.findings[0], ratio=9.0, reached=1.0, strength="beyond")
    judged = replace(parted, findings=(inside, beyond))
    kinds = [one.kind for one in of_comparison(judged, fails=True, here=nowhere)[:2]]
    assert kinds == [Kind.NOTICE, Kind.ERROR]
    elsewhere = of_comparison(parted, fails=False, here=nowhere)[0]
    assert (elsewhere.file, elsewhere.line) == ("", 0)
    assert f"({parted.findings[0].place.candidate_site})" in elsewhere.message


def test_su7_the_summary_stays_within_a_mebibyte_and_counts_what_is_missing() -> None:
    text = "\n\n".join(f"paragraph {number} é" for number in range(100_000))
    shown = within(text, there=0)
    assert shown is not None
    assert len(shown.encode()) <= LIMIT_BYTES
    assert "are left out: the summary of a step may hold 1 MiB" in shown
    assert within(text, there=LIMIT_BYTES - 100) is None
    assert within("short", there=10) == "short"


def test_a_block_that_the_cut_left_open_is_ended() -> None:
    block = "````text\n" + "x\n\n" * 400_000 + "````\n"
    shown = within(f"head\n\n{block}", there=0)
    assert shown is not None
    assert shown.count("````") == 2


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A step of a workflow in a repository that holds train.py, with two runs that part at its line 12."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("pass\n")
    write_run(tmp_path / "A", records.training(), steps="0:3")
    parted = [
        records.call(one.id, bits=f"{one.id:016x}", step=one.id // 100)
        if isinstance(one, type(records.call(1))) and one.id >= 100
        else one
        for one in records.training()
    ]
    write_run(tmp_path / "B", parted, steps="0:3")
    return tmp_path


def test_su14_a_step_is_annotated_and_summarised_by_itself(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (step / "summary.md").write_text("what was said before\n")
    assert status_of(["compare", "A", "B", "--exit-code"]) == 1
    told = capsys.readouterr()
    assert "::error file=train.py,line=12,title=paritrace F1::" in told.err
    assert told.out.startswith("[F1]")
    summary = (step / "summary.md").read_text()
    assert summary.startswith("what was said before\n### paritrace compare")
    assert status_of(["check", "A"]) == 0
    assert "### paritrace check `run-A`" in (step / "summary.md").read_text()


def test_su4_json_stays_one_document(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert status_of(["compare", "A", "B", "--json"]) == 0
    told = capsys.readouterr()
    json.loads(told.out)
    assert "::warning file=train.py,line=12" in told.err


def test_su7_a_summary_that_cannot_be_written_fails_nothing(
    step: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step / "train.py" / "summary.md"))
    assert status_of(["compare", "A", "B"]) == 0
    assert "the step's summary was not written" in capsys.readouterr().err
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step / "full.md"))
    (step / "full.md").write_bytes(b"x" * LIMIT_BYTES)
    assert status_of(["compare", "A", "B"]) == 0
    assert "the step's summary is full" in capsys.readouterr().err
    assert (step / "full.md").stat().st_size == LIMIT_BYTES
