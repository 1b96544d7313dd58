"""Opening a run and reading it: records, losses, attachments, sources; damage is named (EV-8, EV-13, EV-15)."""

import hashlib
import json
import random
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError, InternalError, ParitraceError
from paritrace.evidence.calls import Call, EndMark
from paritrace.evidence.journal import Loss, LossReason
from paritrace.runs.envelope import AttachmentKind, SessionStatus
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.runs.showing import summarise
from paritrace.runs.verify import Finding, verify
from tests.runs.making import SOURCE, another_process, capture, request, torchrun, write_records


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    capture(tmp_path / "run")
    return tmp_path / "run"


def journal_of(run_dir: Path) -> Path:
    return run_dir / "sessions" / "rank-0" / "calls.jsonl"


def test_a_run_reads_back_whole(run_dir: Path) -> None:
    with open_run(run_dir) as run:
        records = list(run.records("rank-0"))
        assert [type(record).__name__ for record in records] == [
            "JournalHeader", "Name", "Call", "Call", "Call", "StepMark", "EndMark",
        ]  # fmt: skip
        assert run.run_id == "run-1"
        assert run.digest == hashlib.sha256((run_dir / "run.json").read_bytes()).hexdigest()
        assert [view.status for view in run.sessions] == [SessionStatus.COMPLETED]
        assert run.source(hashlib.sha256(SOURCE).hexdigest()) == SOURCE.decode()


def test_the_envelope_itself_may_be_named(run_dir: Path) -> None:
    assert open_run(run_dir / "run.json").run_id == "run-1"


def test_each_rank_has_its_own_records(tmp_path: Path) -> None:
    for rank in (0, 1):
        capture(tmp_path / "run", environ=torchrun(rank))
    run = open_run(tmp_path / "run")
    assert [(view.session_id, view.rank, view.incarnation) for view in run.sessions] == [
        ("rank-0", 0, 0),
        ("rank-1", 1, 0),
    ]
    for view in run.sessions:
        assert sum(isinstance(record, Call) for record in run.records(view.session_id)) == 3


def test_an_unknown_session_is_a_fault_of_the_caller(run_dir: Path) -> None:
    with pytest.raises(InternalError):
        list(open_run(run_dir).session("rank-9").session_id)


def test_losses_are_yielded_and_strict_refuses_them(run_dir: Path) -> None:
    data = journal_of(run_dir).read_bytes()
    journal_of(run_dir).write_bytes(data.replace(b'["c",1,', b'["c",X,'))
    run = open_run(run_dir)
    items = list(run.records("rank-0"))
    (loss,) = [item for item in items if isinstance(item, Loss)]
    assert (loss.line, loss.reason) == (4, LossReason.MALFORMED)
    assert len(items) == 7
    with pytest.raises(EvidenceError) as caught:
        list(run.records("rank-0", strict=True))
    assert caught.value.code == "journal_losses"
    assert "line 4" in caught.value.message


def test_a_missing_journal_is_a_loss_not_an_empty_session(run_dir: Path) -> None:
    journal_of(run_dir).unlink()
    (loss,) = list(open_run(run_dir).records("rank-0"))
    assert isinstance(loss, Loss)
    assert (loss.reason, loss.length) == (LossReason.MISSING, 0)


def test_a_journal_cut_at_a_line_is_known_to_be_short(run_dir: Path) -> None:
    data = journal_of(run_dir).read_bytes()
    cut = data.index(b'["c",2,')
    journal_of(run_dir).write_bytes(data[:cut])
    *_, last = open_run(run_dir).records("rank-0")
    assert isinstance(last, Loss)
    assert last.detail == f"the file ends {len(data) - cut} bytes before what was sealed"


def test_a_killed_capture_reads_what_was_flushed(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request(process=another_process()))
    write_records(session, session.open_journal())
    session.attach_copy(AttachmentKind.SOURCE, "<main>", SOURCE, "text/x-python")
    run = open_run(tmp_path / "run")
    assert run.sessions[0].seen.words == "interrupted; cause unknown"
    assert sum(isinstance(record, Call) for record in run.records("rank-0")) == 3
    assert not any(isinstance(record, EndMark) for record in run.records("rank-0"))
    assert run.source(hashlib.sha256(SOURCE).hexdigest()) == SOURCE.decode()  # though nothing registered it yet


def test_a_source_that_changed_or_is_not_kept_is_not_shown(run_dir: Path) -> None:
    digest = hashlib.sha256(SOURCE).hexdigest()
    run = open_run(run_dir)
    assert run.source("0" * 64) is None
    assert run.source("../../run.json") is None
    (run_dir / "attachments" / digest).write_bytes(b"print('forged')\n")
    assert run.source(digest) is None


def test_a_changed_attachment_is_refused(run_dir: Path) -> None:
    run = open_run(run_dir)
    (row,) = [row for row in run.envelope.attachments if row.kind is AttachmentKind.SOURCE]
    assert run.attachment(row.attachment_id) == SOURCE
    (run_dir / str(row.path)).write_bytes(b"forged")
    with pytest.raises(EvidenceError) as caught:
        run.attachment(row.attachment_id)
    assert caught.value.code == "attachment_changed"
    with pytest.raises(EvidenceError) as missing:
        run.attachment("no such id")
    assert missing.value.code == "no_attachment"


@pytest.mark.parametrize("damage", [b"", b"{", b'{"type":"receipt"}', b"\xff\xfe"])
def test_a_damaged_receipt_does_not_close_the_run(run_dir: Path, damage: bytes) -> None:
    (run_dir / "sessions" / "rank-0" / "receipt.json").write_bytes(damage)
    (view,) = open_run(run_dir).sessions
    assert (view.status, view.seen.words) == (SessionStatus.INCOMPLETE, "incomplete; its receipt cannot be read")
    assert view.damage


def test_what_is_not_a_run_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(HostError) as absent:
        open_run(tmp_path / "no")
    assert absent.value.code == "not_found"
    with pytest.raises(EvidenceError) as folder:
        open_run(tmp_path)
    assert folder.value.code == "not_a_run"
    (tmp_path / "file").write_text("some text")
    with pytest.raises(EvidenceError) as file:
        open_run(tmp_path / "file")
    assert file.value.code == "bad_archive"
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(EvidenceError) as empty:
        open_run(tmp_path / "empty")
    assert empty.value.code == "bad_archive"


def test_a_run_of_a_later_minor_version_is_read_with_its_surplus_counted(run_dir: Path) -> None:
    path = run_dir / "run.json"
    document = json.loads(path.read_text())
    document["version"] = "1.4"
    document["mood"] = "calm"
    document["sessions"][0]["weather"] = {"rain": 1}
    path.write_text(json.dumps(document))
    run = open_run(run_dir)
    assert run.unknown_fields == 2
    assert [view.status for view in run.sessions] == [SessionStatus.COMPLETED]


def test_a_run_of_a_later_minor_version_that_lacks_a_field_is_refused(run_dir: Path) -> None:
    path = run_dir / "run.json"
    document = json.loads(path.read_text())
    document["version"] = "1.4"
    del document["run_id"]
    path.write_text(json.dumps(document))
    with pytest.raises(EvidenceError) as caught:
        open_run(run_dir)
    assert caught.value.code == "invalid_document"
    assert "run_id" in caught.value.message


def test_temporary_files_are_ignored(run_dir: Path) -> None:
    for folder in (run_dir, run_dir / "attachments", run_dir / "sessions" / "rank-0"):
        (folder / ".paritrace-0123.tmp").write_bytes(b"half of something")
    assert verify(open_run(run_dir)).verdict is Finding.INTACT


def test_random_damage_is_never_a_traceback_and_never_unseen(run_dir: Path) -> None:
    """One file of the run is flipped or cut; reading refuses by name or verification sees it."""
    rng = random.Random(20_260_202)
    kept = {path: path.read_bytes() for path in sorted(run_dir.rglob("*")) if path.is_file() and path.name != ".lock"}
    envelope_damage_seen = 0
    for _ in range(1000):
        path = rng.choice(list(kept))
        data = bytearray(kept[path])
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        else:
            data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        path.write_bytes(bytes(data))
        try:
            run = open_run(run_dir)
            verdict, digest = verify(run).verdict, run.digest
            summarise(run)
        except ParitraceError as error:
            verdict, digest = Finding.CHANGED, error.code
        path.write_bytes(kept[path])
        if path.name == "run.json":  # carries no digest of itself: its digest is another one at least
            assert digest != hashlib.sha256(kept[path]).hexdigest()
            envelope_damage_seen += 1
        else:
            assert verdict in (Finding.CHANGED, Finding.MISSING), path
    assert envelope_damage_seen > 100
