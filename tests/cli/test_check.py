"""`paritrace check`: the screen, the document, the exit statuses, damaged and foreign input (CP-25, SU-3, SU-4)."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from paritrace.cli.entry import status_of
from paritrace.compare.checks import check
from paritrace.compare.checks_rules_presence import BETWEEN_RANKS
from paritrace.evidence.calls import Row, State
from paritrace.evidence.definition import Definition
from paritrace.inference.trace_reading import read_trace
from paritrace.reports.check_screen import FAILS
from paritrace.reports.check_trace import checked_trace
from paritrace.runs.reading import open_run
from tests.compare import check_records as records
from tests.inference.importers.kineto_reading import DATA
from tests.reports.written_runs import write_run

TRACE = DATA / "hta_critical_path_cuda_event_sync_event_sync_trace.json.gz"


def broken() -> list[Row | Definition]:
    """A run whose loss is NaN at step 1, whose weight has no gradient of its own and whose batch comes again."""
    made: list[Row | Definition] = []
    for record in records.training():
        if record == records.loss(1):
            made.append(records.loss(1, "nan"))
        elif isinstance(record, State) and record.moment == "grads":
            made.append(records.gradients(record.step, records.ZEROS, record.values[1]))
        elif isinstance(record, State) and record.moment == "batch":
            made.append(records.batch(record.step, "c" * 16))
        else:
            made.append(record)
    return made


def test_cp25_a_healthy_run_says_what_holds_and_what_was_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    run = write_run(tmp_path / "A", records.training(), steps="0:3")
    assert status_of(["check", str(run)]) == 0
    screen = capsys.readouterr().out
    golden("check_screen/healthy.txt", screen)
    assert "No invariant that could be checked fails: 15 of 15 hold." in screen
    assert "one rank: there is no other to compare with: replicas.* (6)" in screen


def test_cp25_failures_come_first_with_names_and_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    run = write_run(tmp_path / "A", broken(), steps="0:3")
    assert status_of(["check", str(run)]) == 0
    screen = capsys.readouterr().out
    golden("check_screen/broken.txt", screen)
    assert screen.startswith("[check]     3 of 15 invariants fail; first: the loss is not finite at step 1.")
    assert "step 1: nan" in screen
    assert len(screen.splitlines()) <= 34
    assert max(map(len, screen.splitlines())) <= 100


def test_su4_json_is_one_document_with_the_stable_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "A", records.training(), steps="0:3")
    assert status_of(["check", str(run), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "paritrace-check"
    assert {"invariants", "coverage"} <= document.keys()
    for invariant in document["invariants"]:
        assert {"id", "status", "rank", "step", "name", "evidence"} <= invariant.keys()
        assert invariant["status"] in ("pass", "fail", "not_checkable", "not_applicable")
    assert document["coverage"]["rank-0"]["calls"] == 3
    assert sum(document["counts"].values()) == len(document["invariants"])


def test_su7_the_document_is_the_same_bytes_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "A", broken())
    status_of(["check", str(run), "--json"])
    first = capsys.readouterr().out
    status_of(["check", str(run), "--json"])
    assert capsys.readouterr().out == first


def test_every_invariant_that_can_fail_has_words_for_it(tmp_path: Path) -> None:
    with open_run(write_run(tmp_path / "A", records.training())) as run:
        found = {invariant.id for invariant in check(run).invariants}
    never_fail = {"evidence.all_observed", "replicas.buffers", "replicas.declared"}
    never_fail |= {"trace.devices_read", "times.base"}
    traced = {one.id for one in checked_trace(read_trace(TRACE), path=TRACE).invariants}
    traced |= {"trace.tables"}  # of exports
    assert (found | BETWEEN_RANKS.keys() | traced) - never_fail == FAILS.keys() - {"evidence.ranks_present"}


@pytest.mark.parametrize(
    ("failing", "options", "status"),
    [
        (False, [], 0),
        (True, [], 0),
        (True, ["--exit-code"], 1),
        (False, ["--exit-code"], 0),  # what speaks of several ranks is not applicable to one: nothing is left open
        (False, ["--exit-code", "--allow", "undetermined"], 0),
        (True, ["--exit-code", "--allow", "undetermined"], 1),
        (True, ["--exit-code", "--exit-zero"], 0),
        (False, ["--allow", "everything"], 2),
    ],
)
def test_su3_exit_status(tmp_path: Path, failing: bool, options: list[str], status: int) -> None:
    run = write_run(tmp_path / "A", broken() if failing else records.training(), steps="0:3")
    assert status_of(["check", str(run), *options]) == status


@pytest.mark.parametrize(
    ("options", "status"), [([], 3), (["--allow", "undetermined=1"], 0), (["--allow", "undetermined=0"], 3)]
)
def test_su3_what_could_not_be_checked_ends_with_3(tmp_path: Path, options: list[str], status: int) -> None:
    undeclared = write_run(tmp_path / "A", records.training())  # how many steps were expected is not known
    assert status_of(["check", str(undeclared), "--exit-code", *options]) == status


def test_ev17_a_killed_run_is_checked_and_its_evidence_called_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "A", records.training(), ended=False)
    assert status_of(["check", str(run), "--json", "--exit-code"]) == 1
    found = {one["id"]: one for one in json.loads(capsys.readouterr().out)["invariants"]}
    assert found["evidence.journal_whole"]["status"] == "fail"
    assert "it wrote no receipt" in found["evidence.journal_whole"]["evidence"]["facts"]
    assert found["parameters.change"]["status"] == "pass"


def test_ev8_a_torn_journal_is_read_on_and_its_loss_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "A", records.training(), steps="0:3")
    journal = run / "sessions" / "rank-0" / "calls.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:20], lines[20][:9], b"\n", *lines[21:]]))
    assert status_of(["check", str(run), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = {one["id"]: one for one in document["invariants"]}
    assert found["evidence.journal_whole"]["status"] == "fail"
    assert document["coverage"]["rank-0"]["bytes_lost"] == 10


@pytest.mark.parametrize("content", [None, b"{}", b"\xff\xfe", b""])
def test_a_foreign_run_is_refused_with_its_mend(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "A").mkdir()
    if content is not None:
        (tmp_path / "A" / "run.json").write_bytes(content)
    assert status_of(["check", str(tmp_path / "A"), "--json"]) == 2
    output = capsys.readouterr()
    error = json.loads(output.out)["error"]
    assert error["kind"] == "refused"
    assert error["fix"]
    assert "Traceback" not in output.err


def test_a_run_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["check", str(tmp_path / "nothing")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_su12_names_of_the_workload_are_harmless_on_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b[2J\n[F1] fine"
    made = [
        records.state_names(records.PARAMETERS, "parameter", names=(evil, "layer.bias"))
        if record == records.state_names(records.PARAMETERS, "parameter")
        else records.state_names(records.GRADIENTS, "gradient", names=(evil, "layer.bias"))
        if record == records.state_names(records.GRADIENTS, "gradient")
        else record
        for record in broken()
    ]
    assert status_of(["check", str(write_run(tmp_path / "A", made))]) == 0
    screen = capsys.readouterr().out
    assert "\x1b" not in screen
    assert "\\x1b[2J\\n[F1] fine" in screen
