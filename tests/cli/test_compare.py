"""`paritrace compare`, explain and why-not on written runs: places, exit statuses, bad input (SU-2 to SU-4)."""

import json
import shutil
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from paritrace.cli.entry import status_of
from paritrace.compare.result import Comparison
from paritrace.evidence.calls import Call, Function, Row, Scalars, Scope, Site
from paritrace.evidence.definition import Definition
from paritrace.reports.formats import FORMATS
from tests.compare import check_records as records
from tests.reports.test_first_screen import assert_within_bounds
from tests.reports.written_runs import write_run

FILES = {"calls.parquet", "comparison.json", "first_screen.txt", "manifest.json"}
EVERYTHING = FILES | {form.file for form in FORMATS.values() if form.comparison}


def differing() -> list[Row | Definition]:
    """The healthy run, but for the output of its call at step 1 and everything after it that follows."""
    made: list[Row | Definition] = []
    for record in records.training():
        if isinstance(record, Call) and record.id >= 100:
            made.append(records.call(record.id, bits=f"{record.id:016x}", step=record.id // 100))
        else:
            made.append(record)
    return made


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A and B of one training, of which B parts at step 1."""
    return (
        write_run(tmp_path / "A", records.training(), steps="0:3"),
        write_run(tmp_path / "B", differing(), steps="0:3"),
    )


def kept(candidate: Path) -> Path:
    (directory,) = [path.parent for path in candidate.glob("comparisons/*/*/manifest.json")]
    return directory


def test_cp29_the_screen_is_printed_and_kept_below_the_candidate(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["compare", *map(str, runs)]) == 0
    screen = capsys.readouterr().out
    assert_within_bounds(screen)
    assert screen.startswith("[F1]")
    assert "first difference: train.py:12, step 1, rank 0" in screen
    directory = kept(runs[1])
    assert {path.name for path in directory.iterdir()} == FILES
    assert (directory / "first_screen.txt").read_text() == screen
    assert f"[kept]      {directory}"[:40] in screen


def test_su4_json_is_one_document_and_names_its_files(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["compare", *map(str, runs), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = msgspec.convert(document, type=Comparison)
    assert found.verdict == "not_evaluated"
    assert found.first_difference is not None
    assert (found.first_difference.step, found.first_difference.line) == (1, 12)
    assert found.limits
    directory = Path(document["reports"]["directory"])
    assert directory == kept(runs[1])
    assert all((directory / document["reports"][name]).is_file() for name in ("text", "json", "parquet", "manifest"))


def test_counts_agree_with_calls_parquet(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    status_of(["compare", *map(str, runs), "--json"])
    counts = json.loads(capsys.readouterr().out)["counts"]
    table = pq.read_table(kept(runs[1]) / "calls.parquet").to_pylist()
    baseline = [row for row in table if row["side"] == "baseline"]
    candidate = [row for row in table if row["side"] == "candidate"]
    assert (len(baseline), len(candidate)) == (counts["calls_baseline"], counts["calls_candidate"])
    for side in (baseline, candidate):
        assert sum(row["correspondence"] == "paired" for row in side) == counts["paired"]
        for status, count in (("ok", "ok"), ("different", "different"), ("incomparable", "incomparable")):
            assert sum(row["status"] == status for row in side) == counts[count]
    by_id = {row["record_id"]: row for row in candidate}
    assert all(by_id[row["partner"]]["partner"] == row["record_id"] for row in baseline if row["partner"] is not None)


def test_p3_comparing_again_gives_the_same_bytes_in_the_same_place(runs: tuple[Path, Path]) -> None:
    status_of(["compare", *map(str, runs)])
    directory = kept(runs[1])
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    status_of(["compare", *map(str, runs)])
    assert {path.name: path.read_bytes() for path in kept(runs[1]).iterdir()} == before


def test_p3_comparing_does_not_change_the_runs(runs: tuple[Path, Path]) -> None:
    before = [{path: path.read_bytes() for path in run.rglob("*") if path.is_file()} for run in runs]
    status_of(["compare", *map(str, runs)])
    for run, files in zip(runs, before, strict=True):
        assert {path: path.read_bytes() for path in files} == files
        added = {path for path in run.rglob("*") if path.is_file()} - files.keys()
        assert all(path.is_relative_to(runs[1] / "comparisons") for path in added)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-o", "out"], EVERYTHING),
        (["-o", "out", "--format", "json", "--format", "text"], FILES - {"calls.parquet"}),
        (["-o", "out", "--format", "json"], FILES - {"calls.parquet", "first_screen.txt"}),
    ],
)
def test_su4_a_folder_gets_everything_or_what_was_chosen(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], expected: set[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status_of(["compare", "A", "B", *options]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == expected
    assert not (runs[1] / "comparisons").exists()


@pytest.mark.parametrize(("name", "start"), [("r.json", b"{"), ("r.txt", b"[F1]"), ("r.parquet", b"PAR1")])
def test_su4_a_file_gets_one_format_by_its_suffix(
    runs: tuple[Path, Path], tmp_path: Path, name: str, start: bytes
) -> None:
    assert status_of(["compare", *map(str, runs), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["-o", "report.csv"], "no_such_format"),
        (["--format", "parquet"], "no_place_for_format"),
        (["--format", "json", "--format", "text"], "no_place_for_format"),
        (["--steps", "3:1"], "bad_steps"),
        (["--ranks", "x"], "bad_ranks"),
        (["--allow", "all"], "bad_allowance"),
        (["--policy", "rules"], "not_found"),
        (["--policy", "A/run.json"], "bad_policy"),
        (["--policy", "A/run.json", "--allow", "undetermined"], "two_rules"),
        (["--map", "a=b", "--map", "a=c"], "conflicting_maps"),
        (["-o", "A"], "another_result"),
    ],
)
def test_su4_what_cannot_be_done_is_refused_and_nothing_is_written(
    runs: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    code: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    assert status_of(["compare", "A", "B", "--json", *options]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["kind"]) == (code, "refused")
    assert error["fix"]
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("same", "options", "status"),
    [
        (True, ["--exit-code"], 0),
        (False, [], 0),
        (False, ["--exit-code"], 1),
        (False, ["--exit-code", "--steps", "0:1"], 0),
        (False, ["--exit-code", "--exit-zero"], 0),
    ],
)
def test_su3_exit_status(runs: tuple[Path, Path], tmp_path: Path, same: bool, options: list[str], status: int) -> None:
    other = write_run(tmp_path / "C", records.training(), steps="0:3") if same else runs[1]
    assert status_of(["compare", str(runs[0]), str(other), *options]) == status


def test_su3_undetermined_is_3_unless_allowed(runs: tuple[Path, Path], tmp_path: Path) -> None:
    more = [*records.training(), records.call(500), records.call(502)]
    other = str(write_run(tmp_path / "C", more, steps="0:3"))
    assert status_of(["compare", str(runs[0]), other, "--exit-code"]) == 3
    assert status_of(["compare", str(runs[0]), other, "--exit-code", "--allow", "undetermined=1"]) == 3
    assert status_of(["compare", str(runs[0]), other, "--exit-code", "--allow", "undetermined"]) == 0


def test_a_candidate_that_cannot_be_written_is_said_and_the_screen_printed(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (runs[1] / "comparisons").write_text("in the way")
    assert status_of(["compare", *map(str, runs)]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("[F1]")
    assert "[kept]" not in output.out
    assert "paritrace explain" not in output.out
    assert "the result was not kept" in output.err


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", None])
def test_a_corrupt_run_is_refused_whichever_side(
    runs: tuple[Path, Path], content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = runs[0].parent / "bad"
    shutil.copytree(runs[0], bad)
    if content is None:
        (bad / "run.json").unlink()
    else:
        (bad / "run.json").write_bytes(content)
    for pair in ((bad, runs[1]), (runs[0], bad)):
        assert status_of(["compare", *map(str, pair), "--json"]) == 2
        output = capsys.readouterr()
        assert json.loads(output.out)["error"]["kind"] == "refused"
        assert "Traceback" not in output.err


def test_p9_explain_follows_the_first_difference_to_both_journals(
    runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status_of(["compare", *map(str, runs)])
    capsys.readouterr()
    monkeypatch.chdir(runs[0].parent)
    assert status_of(["explain", "F1"]) == 0
    text = capsys.readouterr().out
    journal = runs[0] / "sessions" / "rank-0" / "calls.jsonl"
    lines = journal.read_bytes().splitlines()
    number = next(number for number, line in enumerate(lines, start=1) if line.startswith(b'["c",100,'))
    assert f"baseline:100  {journal}:{number}" in text
    assert "candidate:100" in text
    assert status_of(["explain", str(runs[1]), "counts.paired", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["total"] == 3
    assert document["records"][0]["journal_line"] > 0


def test_cp3c_why_not_answers_for_a_call_of_one_side(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_run(tmp_path / "C", [*records.training(), records.call(500)], steps="0:3")
    status_of(["compare", str(runs[0]), str(other)])
    capsys.readouterr()
    table = pq.read_table(kept(other) / "calls.parquet").to_pylist()
    unpaired = [row for row in table if row["correspondence"] == "undetermined"]
    assert unpaired
    one = unpaired[-1]
    assert status_of(["why-not", str(other), f"{one['side']}:{one['record_id']}", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["reason"] == one["reason"]
    assert answer["reason_in_words"]
    assert answer["none_was_unique"]
    assert status_of(["why-not", str(other), "baseline:100"]) == 0
    assert "paired     with candidate:100" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["explain", "F1"], "no_result"),
        (["explain", "nowhere", "F1"], "no_result"),
        (["explain"], "usage"),
        (["explain", "a", "b", "c"], "usage"),
        (["why-not", "candidate:1"], "no_result"),
    ],
)
def test_explain_without_a_result_says_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status_of([*arguments, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["kind"]) == (code, "refused")


def test_cp7_other_arguments_are_named_where_the_tensors_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An epsilon of 1e-5 for 1e-6 with the same code: the call is found, and so is what it was asked for."""

    def training(epsilon: str, bits: str) -> list[Row | Definition]:
        made: list[Row | Definition] = []
        for record in records.training():
            if isinstance(record, Call):
                made.append(replace(records.call(record.id, bits=bits, step=record.id // 100), scalars=1))
            else:
                made.append(record)
        made.insert(1, Scalars(1, {"1": epsilon}))
        return made

    base = write_run(tmp_path / "A", training("1e-06", "1" * 16), steps="0:3")
    other = write_run(tmp_path / "B", training("1e-05", "2" * 16), steps="0:3")
    assert status_of(["compare", str(base), str(other)]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "is called with args[1]=1e-05 instead of args[1]=1e-06." in screen
    assert "arguments: args[1]=1e-06 -> args[1]=1e-05" in screen


def test_su12_a_malicious_run_moves_no_cursor_and_claims_no_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "\x1b[2J\r\n[F1]        all is well\u202e[bold red]" + "x" * 300

    def hostile(made: list[Row | Definition]) -> list[Row | Definition]:
        swapped: list[Row | Definition] = []
        for record in made:
            match record:
                case Scope():
                    swapped.append(replace(record, module=evil, cls=evil))
                case Function():
                    swapped.append(replace(record, name=evil))
                case Site():
                    swapped.append(replace(record, file=evil, function=evil))
                case _:
                    swapped.append(record)
        return swapped

    base = write_run(tmp_path / "A", hostile(records.training()), steps="0:3")
    other = write_run(tmp_path / "B", hostile(differing()), steps="0:3")
    monkeypatch.chdir(tmp_path)
    commands = (["compare", str(base), str(other)], ["explain", "F1"], ["explain", "ladder.forward"])
    for command in (*commands, ["why-not", "candidate:100"], ["check", str(other)]):
        assert status_of(command) == 0
        text = capsys.readouterr().out
        assert all(line.isprintable() for line in text.splitlines())
        assert not any(line.startswith("[F1]        all is well") for line in text.splitlines())
    assert_within_bounds((kept(other) / "first_screen.txt").read_text())
