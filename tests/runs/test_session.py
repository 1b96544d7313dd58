"""What a session registers and how it ends (EV-14, EV-15, EV-18, EV-21, EV-22)."""

import hashlib
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError, InternalError, RequestError
from paritrace.evidence.gaps import CaptureGap, Gap, RunGap
from paritrace.evidence.surroundings import Surroundings
from paritrace.files import LOCAL
from paritrace.runs.attaching import Reference
from paritrace.runs.documents import read_envelope, read_receipt
from paritrace.runs.envelope import Attachment, AttachmentKind, Availability, Envelope, Receipt, SessionStatus, Storage
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.runs.rows import attachment_row, with_attachment
from paritrace.runs.session import OpenSession
from paritrace.testing.clocks import ManualClock
from tests.runs.making import SOURCE, finish, request, torchrun, write_records

NOT_COLLECTED: Gap[CaptureGap] = Gap(CaptureGap.NOT_COLLECTED)
SURROUNDINGS = Surroundings(
    argv=("train.py",),
    python="3.11",
    platform="linux",
    packages={"torch": "2.13"},
    environment_names=("PATH",),
    devices=("cpu",),
    num_threads=1,
    determinism={},
    policy={},
    git_commit=NOT_COLLECTED,
    git_diff=NOT_COLLECTED,
    main_digest=NOT_COLLECTED,
)
EMPTY = Receipt(lines=0, calls=0, details=0, states=0)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def session(run_dir: Path, clock: ManualClock) -> OpenSession:
    return begin_session(run_dir, request(), clock=clock)


def envelope(run_dir: Path) -> Envelope:
    found = read_envelope(run_dir, files=LOCAL)
    assert found is not None
    return found


def row(run_dir: Path, attachment_id: str) -> Attachment:
    found = attachment_row(envelope(run_dir), attachment_id)
    assert found is not None
    return found


def test_a_live_journal_is_committed_and_sealed(run_dir: Path, session: OpenSession) -> None:
    journal = session.open_journal()
    live = row(run_dir, "tensor_trace:rank-0:calls")
    assert (live.live, live.num_bytes, live.path) == (True, 0, "sessions/rank-0/calls.jsonl")
    lines = write_records(session, journal)
    session.commit_live(live.attachment_id)
    committed = row(run_dir, live.attachment_id)
    data = session.journal_path.read_bytes()
    assert (committed.live, committed.num_bytes, committed.sha256) == (
        True,
        len(data),
        hashlib.sha256(data).hexdigest(),
    )
    finish(session, journal, lines=lines)
    sealed = row(run_dir, live.attachment_id)
    data = session.journal_path.read_bytes()
    assert (sealed.live, sealed.num_bytes, sealed.sha256) == (False, len(data), hashlib.sha256(data).hexdigest())


def test_a_live_file_may_only_grow_over_its_prefix(run_dir: Path, session: OpenSession) -> None:
    journal = session.open_journal()
    write_records(session, journal)
    session.commit_live("tensor_trace:rank-0:calls")
    data = bytearray(session.journal_path.read_bytes())
    data[0] ^= 1
    session.journal_path.write_bytes(bytes(data) + b"more\n")
    before = envelope(run_dir)
    with pytest.raises(EvidenceError) as caught:
        session.commit_live("tensor_trace:rank-0:calls")
    assert caught.value.code == "attachment_conflict"
    assert envelope(run_dir) == before
    journal.close()


def test_the_end_is_in_receipt_and_envelope(run_dir: Path, session: OpenSession, clock: ManualClock) -> None:
    journal = session.open_journal()
    lines = write_records(session, journal)
    clock.move(5_000)
    finish(session, journal, lines=lines)
    (ended,) = envelope(run_dir).sessions
    assert (ended.status, ended.duration_ns, ended.ended_unix_ns) == (SessionStatus.COMPLETED, 5_000, clock.wall_ns())
    receipt = read_receipt(session.directory, files=LOCAL)
    assert receipt is not None
    data = session.journal_path.read_bytes()
    assert receipt.files["calls.jsonl"].num_bytes == len(data)
    assert receipt.files["calls.jsonl"].sha256 == hashlib.sha256(data).hexdigest()
    assert (receipt.counts.lines, receipt.counts.calls, receipt.status) == (lines, 3, SessionStatus.COMPLETED)


def test_a_wall_clock_that_steps_back_is_said_and_the_duration_stays(
    run_dir: Path, session: OpenSession, clock: ManualClock
) -> None:
    clock.move(7_000)
    clock.step_wall(-3_600_000_000_000)
    session.end(SessionStatus.COMPLETED, EMPTY)
    (ended,) = envelope(run_dir).sessions
    assert ended.duration_ns == 7_000
    assert ended.metadata["wall_clock"] == "stepped_back"


def test_a_session_ends_once(session: OpenSession) -> None:
    session.end(SessionStatus.INTERRUPTED, EMPTY)
    with pytest.raises(InternalError):
        session.end(SessionStatus.COMPLETED, EMPTY)


def test_a_session_does_not_end_as_running(session: OpenSession) -> None:
    with pytest.raises(InternalError):
        session.end(SessionStatus.RUNNING, EMPTY)


def test_copies_are_kept_once_by_digest(run_dir: Path, session: OpenSession) -> None:
    first = session.attach_copy(AttachmentKind.SOURCE, "<main>", SOURCE, "text/x-python")
    assert session.attach_copy(AttachmentKind.SOURCE, "<main>", SOURCE, "text/x-python") == first
    other = session.attach_copy(AttachmentKind.SOURCE, "pkg/__init__.py", SOURCE, "text/x-python")
    assert other != first
    session.flush()
    digest = hashlib.sha256(SOURCE).hexdigest()
    assert [path.name for path in (run_dir / "attachments").iterdir()] == [digest]
    assert row(run_dir, first).path == row(run_dir, other).path == f"attachments/{digest}"
    assert row(run_dir, first).storage is Storage.COPY


def test_two_ranks_register_one_source_without_conflict(tmp_path: Path) -> None:
    for rank in (0, 1):
        session = begin_session(tmp_path / "run", request(torchrun(rank)))
        session.attach_copy(AttachmentKind.SOURCE, "<main>", SOURCE, "text/x-python")
        session.flush()
    assert len(envelope(tmp_path / "run").attachments) == 1


def test_surroundings_and_metadata_are_written_with_the_next_flush(run_dir: Path, session: OpenSession) -> None:
    session.set_surroundings(SURROUNDINGS)
    session.set_metadata({"k": "v"})
    assert open_run(run_dir).sessions[0].surroundings == Gap(RunGap.NOT_COLLECTED)
    session.flush()
    view = open_run(run_dir).sessions[0]
    assert (view.surroundings, view.row.metadata) == (SURROUNDINGS, {"k": "v"})
    session.set_surroundings(Gap(RunGap.UNREADABLE, "why"))
    session.flush()
    assert open_run(run_dir).sessions[0].surroundings == Gap(RunGap.UNREADABLE, "why")


def test_arguments_that_are_no_text_are_spelled_out(run_dir: Path, session: OpenSession) -> None:
    session.set_surroundings(replace(SURROUNDINGS, argv=("caf\udce9.py",)))
    session.flush()
    found = open_run(run_dir).sessions[0].surroundings
    assert isinstance(found, Surroundings)
    assert found.argv == ("caf\\udce9.py",)


def test_two_processes_under_one_session_are_a_conflict(run_dir: Path, session: OpenSession) -> None:
    path = run_dir / "run.json"
    path.write_text(path.read_text().replace(f'"pid": {os.getpid()}', '"pid": 1'))
    before = path.read_bytes()
    with pytest.raises(EvidenceError) as caught:
        session.flush()
    assert caught.value.code == "session_conflict"
    assert path.read_bytes() == before


def test_only_a_live_attachment_is_committed(session: OpenSession) -> None:
    with pytest.raises(InternalError) as caught:
        session.commit_live("tensor_trace:rank-0:calls")
    assert caught.value.code == "not_live"


def test_an_envelope_that_somebody_removed_is_told(run_dir: Path, session: OpenSession) -> None:
    (run_dir / "run.json").unlink()
    with pytest.raises(EvidenceError) as caught:
        session.flush()
    assert caught.value.code == "envelope_gone"
    assert not (run_dir / "run.json").exists()


# --- references (EV-22) ------------------------------------------------------------------------------------------


def test_a_reference_is_relative_between_resolved_folders(tmp_path: Path, run_dir: Path, session: OpenSession) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "trace.json").write_bytes(b"{}")
    (tmp_path / "link").symlink_to("real")
    made = session.attach_reference(
        Reference(AttachmentKind.PROFILER_TRACE, "trace", path=str(tmp_path / "link" / "trace.json"))
    )
    found = row(run_dir, made)
    assert (found.path, found.num_bytes, found.availability) == ("../real/trace.json", 2, Availability.AVAILABLE)
    digest = hashlib.sha256(str(tmp_path.resolve() / "real" / "trace.json").encode()).hexdigest()
    assert made == f"profiler_trace:trace:{digest[:12]}"
    assert open_run(run_dir).attachment(made) == b"{}"


def test_registering_again_is_a_no_op_and_other_bytes_a_conflict(
    tmp_path: Path, run_dir: Path, session: OpenSession
) -> None:
    (tmp_path / "t").write_bytes(b"one")
    reference = Reference(AttachmentKind.OTHER, "t", path="../t")
    assert session.attach_reference(reference) == session.attach_reference(reference)
    assert len(envelope(run_dir).attachments) == 1
    (tmp_path / "t").write_bytes(b"two")
    with pytest.raises(EvidenceError) as caught:
        session.attach_reference(reference)
    assert caught.value.code == "attachment_conflict"


def test_a_reference_that_cannot_be_read_is_registered_unavailable(run_dir: Path, session: OpenSession) -> None:
    made = session.attach_reference(Reference(AttachmentKind.OTHER, "t", path="../nowhere"))
    found = row(run_dir, made)
    assert found.availability is Availability.UNAVAILABLE
    assert found.sha256 == found.num_bytes == Gap(RunGap.UNREADABLE, "not_found")


def test_an_address_is_registered_without_reading(run_dir: Path, session: OpenSession) -> None:
    made = session.attach_reference(Reference(AttachmentKind.REPORT, "r", url="https://example.org/r.html"))
    found = row(run_dir, made)
    assert (found.path, found.url) == (None, "https://example.org/r.html")
    assert found.availability is Availability.NOT_COLLECTED


@pytest.mark.parametrize(
    "reference",
    [
        Reference(AttachmentKind.OTHER, "t"),
        Reference(AttachmentKind.OTHER, "t", path="a", url="https://x/y"),
        Reference(AttachmentKind.OTHER, "", path="a"),
        Reference(AttachmentKind.OTHER, "  ", path="a"),
        Reference(AttachmentKind.OTHER, "t", path=""),
        Reference(AttachmentKind.OTHER, "t", url=""),
        Reference(AttachmentKind.OTHER, "t", url="no address"),
        Reference(AttachmentKind.OTHER, "t", url="https://user:secret@host/x"),
        Reference(AttachmentKind.OTHER, "t", url="https://token@host/x"),
        Reference(AttachmentKind.OTHER, "t", path="a", attachment_id=""),
    ],
)
def test_a_reference_that_makes_no_sense_is_refused(run_dir: Path, session: OpenSession, reference: Reference) -> None:
    with pytest.raises(RequestError) as caught:
        session.attach_reference(reference)
    assert caught.value.code == "bad_attachment"
    assert envelope(run_dir).attachments == ()


def test_a_refusal_does_not_repeat_a_secret(session: OpenSession) -> None:
    with pytest.raises(RequestError) as caught:
        session.attach_reference(Reference(AttachmentKind.OTHER, "t", url="https://user:hunter2@host/x"))
    assert "hunter2" not in caught.value.message


def test_one_bad_reference_does_not_poison_what_follows(run_dir: Path, tmp_path: Path, session: OpenSession) -> None:
    (tmp_path / "t").write_bytes(b"one")
    session.attach_reference(Reference(AttachmentKind.OTHER, "t", path="../t"))
    (tmp_path / "t").write_bytes(b"two")
    with pytest.raises(EvidenceError):
        session.attach_reference(Reference(AttachmentKind.OTHER, "t", path="../t"))
    session.set_metadata({"still": "alive"})
    session.flush()
    assert envelope(run_dir).sessions[0].metadata == {"still": "alive"}


def test_a_file_that_vanished_cannot_be_registered_live(session: OpenSession) -> None:
    with pytest.raises(HostError) as caught:
        session.register_live("calls", AttachmentKind.TENSOR_TRACE, session.journal_path)
    assert caught.value.code == "not_found"


def test_rows_of_a_sealed_attachment_never_change(run_dir: Path, session: OpenSession) -> None:
    made = session.attach_copy(AttachmentKind.SOURCE, "<main>", SOURCE, "text/x-python")
    session.flush()
    held = row(run_dir, made)
    assert with_attachment(envelope(run_dir), held) == envelope(run_dir)
    with pytest.raises(EvidenceError):
        with_attachment(envelope(run_dir), replace(held, num_bytes=10_000), prefix_sha256="0" * 64)
