"""Pages show how a recorded program ended, as the screens do (RS-13, SU-10)."""

from pathlib import Path

import msgspec

from paritrace.compare.checks import check
from paritrace.compare.checks_result import Checked, Outcome
from paritrace.process.stop_facts import Exited, StopCause
from paritrace.reports.documents import checked_document
from paritrace.reports.formats import OfCheck
from paritrace.reports.html import report
from paritrace.reports.html.check_page import check_page
from paritrace.reports.html.links import InFile
from paritrace.reports.html.run_page import run_page
from paritrace.reports.html.templates import render
from paritrace.runs.death import page_of
from paritrace.runs.reading import open_run
from paritrace.runs.record_words import ends_told
from paritrace.runs.recorded_session import RecordedSession
from paritrace.runs.showing import summarise
from tests.reports.html.pages import assert_whole
from tests.reports.html.test_report import Held
from tests.runs.recording import shell
from tests.runs.test_death import KILLED, WAITED


def recorded(root: Path, *scripts: str) -> Path:
    session = RecordedSession(root)
    for script in scripts:
        session.add(shell(root, script).record.path)
    session.close()
    assert session.trouble is None
    return root


def test_the_report_of_a_check_has_the_ends_that_were_no_success(tmp_path: Path) -> None:
    sink = Held()
    with open_run(recorded(tmp_path / "run", "exit 3", "exit 0")) as run:
        checked = check(run)
        report.check(OfCheck(checked, run=run), sink)
    assert checked.ends is not None
    (end,) = checked.ends.records
    assert end.stop is not None
    assert (end.stop.cause, end.stop.exit) == (StopCause.COMMAND_FAILED, Exited(3))
    kept = msgspec.json.decode(checked_document(checked), type=Checked)
    assert kept.ends == checked.ends, "a kept check says it too"
    assert [one.lines for one in check_page(kept).ends] == [one.lines for one in check_page(checked).ends]
    known = {Outcome.NOT_CHECKABLE, Outcome.NOT_APPLICABLE}
    assert {one.status for one in checked.invariants} == known, "nothing holds where nothing was captured (P1)"
    assert_whole(sink.data.decode())
    text = sink.data.decode()
    assert text.count("How it ended") == 1
    assert "command_failed, exit code 3" in text
    assert "succeeded, after" not in text


def test_the_page_of_a_run_has_every_record_and_a_hostile_name_does_no_harm(tmp_path: Path) -> None:
    script = tmp_path / "<b>x<"
    script.write_text("#!/bin/sh\nexit 5\n")
    script.chmod(0o755)
    with open_run(recorded(tmp_path / "run", "exit 0", f"exec '{script}'")) as run:
        page = run_page(summarise(run))
    assert [one.lines[0].split(",")[0] for one in page.ends] == ["succeeded", "command_failed"]
    text = render("notebook_run.html", page=page, links=InFile(anchors=()), style="")
    assert "command_failed, exit code 5" in text


def test_rs_13_the_page_at_death_is_a_part_of_its_own() -> None:
    (told,) = ends_told((), page_of([KILLED, WAITED], in_flight=(), sources=()), most=3)
    assert told.headline.startswith("at its end: rank 1")
    assert any(line.startswith("rank 0") for line in told.lines)


def test_a_run_that_ended_well_has_no_ends(tmp_path: Path) -> None:
    with open_run(recorded(tmp_path / "run", "exit 0")) as run:
        checked = check(run)
    assert checked.ends is None
    assert check_page(checked).ends == ()
