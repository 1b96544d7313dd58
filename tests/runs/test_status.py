"""A killed run is interrupted, cause unknown; nothing more is claimed (EV-17, P2)."""

import itertools
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.process.identity import Life, Liveness
from paritrace.runs.envelope import Receipt, ReceiptDocument, Session, SessionStatus
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.runs.status import seen_status
from paritrace.testing.clocks import ManualClock
from tests.runs.making import another_process, request

RECEIPT = ReceiptDocument(
    format="paritrace-receipt",
    version="1.0",
    session_id="rank-0",
    status=SessionStatus.COMPLETED,
    ended_unix_ns=5,
    counts=Receipt(lines=0, calls=0, details=0, states=0),
    files={},
)


@pytest.fixture
def row(tmp_path: Path) -> Session:
    begin_session(tmp_path / "run", request(), clock=ManualClock())
    return open_run(tmp_path / "run").sessions[0].row


@pytest.mark.parametrize(
    ("status", "receipt", "life", "seen", "words"),
    [
        ("completed", RECEIPT, Life.GONE, "completed", "completed"),
        ("completed", None, Life.GONE, "incomplete", "incomplete; its receipt is missing"),
        ("running", None, Life.ALIVE, "running", "running"),
        ("running", None, Life.GONE, "interrupted", "interrupted; cause unknown"),
        (
            "running",
            RECEIPT,
            Life.GONE,
            "interrupted",
            "interrupted; cause unknown, after its receipt was written (completed)",
        ),
        ("running", None, Life.NOT_CHECKABLE, "running", "running when last written; not checkable here: why"),
        ("interrupted", RECEIPT, Life.GONE, "interrupted", "interrupted"),
        ("incomplete", None, Life.GONE, "incomplete", "incomplete"),
    ],
)
def test_what_a_reader_may_say(
    row: Session, status: str, receipt: ReceiptDocument | None, life: Life, seen: str, words: str
) -> None:
    recorded = replace(row, status=SessionStatus(status))
    found = seen_status(recorded, receipt=receipt, damage="", liveness=Liveness(life, "why"))
    assert (found.status.value, found.words) == (seen, words)


def test_nothing_is_called_completed_that_did_not_say_so(row: Session) -> None:
    for status, receipt, life, damage in itertools.product(SessionStatus, (RECEIPT, None), Life, ("", "bad")):
        found = seen_status(replace(row, status=status), receipt=receipt, damage=damage, liveness=Liveness(life, ""))
        if found.status is SessionStatus.COMPLETED:
            assert status is SessionStatus.COMPLETED
            assert receipt is not None


def test_a_run_whose_process_is_gone_reads_as_interrupted(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request(process=another_process()))
    (view,) = open_run(tmp_path / "run").sessions
    assert (view.status, view.seen.words) == (SessionStatus.INTERRUPTED, "interrupted; cause unknown")
    assert view.row.status is SessionStatus.RUNNING  # the observation stays as it was written
