"""verify hashes and counts again: intact, changed, missing, not_checked (EV-16, EV-18, SU-19)."""

import os
from pathlib import Path

import pytest

from paritrace.evidence import codec
from paritrace.evidence.calls import EndMark, Name
from paritrace.runs.attaching import Reference
from paritrace.runs.envelope import AttachmentKind, Receipt, SessionStatus
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.runs.verify import MAX_LOSSES_LISTED, Finding, Item, Verification, verdict, verify
from tests.runs.making import SOURCE, another_process, capture, header, request, write_records


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    capture(tmp_path / "run")
    return tmp_path / "run"


def found(run_dir: Path) -> Verification:
    return verify(open_run(run_dir))


def item(of: Verification, name: str) -> Item:
    (one,) = [item for item in of.items if item.id == name]
    return one


def test_a_whole_run_is_intact(run_dir: Path) -> None:
    result = found(run_dir)
    assert result.verdict is Finding.INTACT
    assert result.counts == {"intact": len(result.items), "changed": 0, "missing": 0, "not_checked": 0}
    kinds = sorted(item.id.split(":")[0] for item in result.items)
    assert kinds == ["calls.jsonl", "other", "receipt", "source", "tensor_trace"]
    (journal,) = result.journals
    assert (journal.account.records, journal.losses, journal.mismatches) == (7, (), ())
    assert result.not_covered


def test_every_changed_byte_of_every_covered_file_is_seen(run_dir: Path) -> None:
    for path in sorted(run_dir.rglob("*")):
        if not path.is_file() or path.name in ("run.json", ".lock"):
            continue
        kept = path.read_bytes()
        for at in range(0, len(kept), 17):
            path.write_bytes(kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :])
            assert found(run_dir).verdict is Finding.CHANGED, (path, at)
        for end in (0, len(kept) // 2, len(kept) - 1):
            path.write_bytes(kept[:end])
            assert found(run_dir).verdict is Finding.CHANGED, (path, end)
        path.write_bytes(kept + b"\n")
        assert found(run_dir).verdict is Finding.CHANGED, path
        path.unlink()
        assert found(run_dir).verdict in (Finding.MISSING, Finding.CHANGED), path
        path.write_bytes(kept)


def test_changed_comes_before_missing_before_not_checked() -> None:
    for present, expected in (
        ({"intact", "not_checked", "missing", "changed"}, Finding.CHANGED),
        ({"intact", "not_checked", "missing"}, Finding.MISSING),
        ({"intact", "not_checked"}, Finding.NOT_CHECKED),
        ({"intact"}, Finding.INTACT),
        (set[str](), Finding.INTACT),
    ):
        assert verdict([Item("x", Finding(name), "") for name in sorted(present)]) is expected


def test_a_live_file_is_checked_as_far_as_it_is_committed(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request(process=another_process()))
    journal = session.open_journal()
    write_records(session, journal)
    session.commit_live("tensor_trace:rank-0:calls")
    committed = session.journal_path.stat().st_size
    live = item(found(tmp_path / "run"), "tensor_trace:rank-0:calls")
    assert live.status is Finding.INTACT
    journal.write(codec.encode_mark(Name(9, "more")))
    live = item(found(tmp_path / "run"), "tensor_trace:rank-0:calls")
    assert (live.status, f"committed {committed} bytes" in live.detail) == (Finding.NOT_CHECKED, True)
    data = bytearray(session.journal_path.read_bytes())
    data[committed - 2] ^= 1
    session.journal_path.write_bytes(bytes(data))
    assert item(found(tmp_path / "run"), "tensor_trace:rank-0:calls").status is Finding.CHANGED
    session.journal_path.write_bytes(bytes(data[: committed - 5]))
    assert item(found(tmp_path / "run"), "tensor_trace:rank-0:calls").status is Finding.CHANGED
    journal.close()


def test_a_killed_session_is_not_checked_where_nothing_was_sealed(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request(process=another_process()))
    write_records(session, session.open_journal())
    result = found(tmp_path / "run")
    assert result.verdict is Finding.NOT_CHECKED
    assert item(result, "receipt:rank-0").status is Finding.NOT_CHECKED
    assert result.journals[0].status == "interrupted; cause unknown"


def test_a_receipt_that_went_missing_is_missing(run_dir: Path) -> None:
    (run_dir / "sessions" / "rank-0" / "receipt.json").unlink()
    assert item(found(run_dir), "receipt:rank-0").status is Finding.MISSING


@pytest.mark.parametrize(
    ("end", "receipt", "says"),
    [
        (EndMark(lines=2, calls=1, details=0, states=0, gaps={}), (2, 0, 0, 0), "0 calls, the end mark says 1"),
        (
            EndMark(lines=9, calls=0, details=0, states=0, gaps={}),
            (2, 0, 0, 0),
            "2 lines before the end mark, it says 9",
        ),
        (EndMark(lines=2, calls=0, details=0, states=0, gaps={}), (2, 0, 4, 0), "0 details, the receipt says 4"),
        (EndMark(lines=2, calls=0, details=0, states=0, gaps={}), (2, 0, 0, 7), "0 states, the receipt says 7"),
    ],
)
def test_counts_that_do_not_agree_are_a_change(
    tmp_path: Path, end: EndMark, receipt: tuple[int, int, int, int], says: str
) -> None:
    session = begin_session(tmp_path / "run", request())
    with session.open_journal() as journal:
        journal.write(codec.encode_mark(header(session)))
        journal.write(codec.encode_mark(Name(0, "x")))
        journal.write(codec.encode_mark(end))
    session.end(SessionStatus.COMPLETED, Receipt(*receipt))
    counted = item(found(tmp_path / "run"), "calls.jsonl:rank-0")
    assert (counted.status, counted.detail) == (Finding.CHANGED, says)


def test_a_capture_that_ended_for_lack_of_space_may_hold_more_than_it_acknowledged(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request())
    with session.open_journal() as journal:
        write_records(session, journal)
    session.end(SessionStatus.INCOMPLETE, Receipt(lines=2, calls=2, details=0, states=0))
    assert item(found(tmp_path / "run"), "calls.jsonl:rank-0").status is Finding.NOT_CHECKED


def test_a_journal_of_another_rank_is_seen(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request())
    with session.open_journal() as journal:
        head = codec.encode_mark(header(session)).replace(b'"rank":0', b'"rank":3')
        journal.write(head)
        journal.write(codec.encode_mark(EndMark(lines=1, calls=0, details=0, states=0, gaps={})))
    session.end(SessionStatus.COMPLETED, Receipt(1, 0, 0, 0))
    assert item(found(tmp_path / "run"), "calls.jsonl:rank-0").detail == "the journal says rank 3, the envelope 0"


def test_a_foreign_journal_is_a_change_not_an_error(run_dir: Path) -> None:
    (run_dir / "sessions" / "rank-0" / "calls.jsonl").write_bytes(b'{"format":"other","version":"1.0"}\n')
    result = found(run_dir)
    assert item(result, "journal:rank-0").status is Finding.CHANGED
    assert result.journals == ()


@pytest.mark.parametrize("kind", ["folder", "fifo", "link"])
def test_something_else_under_an_attachments_name(run_dir: Path, kind: str) -> None:
    (path,) = (run_dir / "attachments").iterdir()
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")
    assert found(run_dir).verdict in (Finding.CHANGED, Finding.MISSING)


def test_references_outside_are_checked_and_addresses_are_not(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(b"{}")
    session = begin_session(tmp_path / "run", request(process=another_process()))
    trace = session.attach_reference(Reference(AttachmentKind.PROFILER_TRACE, "trace", path="../trace.json"))
    address = session.attach_reference(Reference(AttachmentKind.REPORT, "r", url="https://example.org/r"))
    absent = session.attach_reference(Reference(AttachmentKind.OTHER, "t", path="../nowhere"))
    result = found(tmp_path / "run")
    assert [item(result, name).status for name in (trace, address, absent)] == [
        Finding.INTACT,
        Finding.NOT_CHECKED,
        Finding.NOT_CHECKED,
    ]
    (tmp_path / "trace.json").unlink()
    assert item(found(tmp_path / "run"), trace).status is Finding.MISSING


def test_copies_that_nothing_registered_yet_are_checked_by_their_name(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request(process=another_process()))
    session.attach_copy(AttachmentKind.SOURCE, "<main>", SOURCE, "text/x-python")
    (copy,) = (tmp_path / "run" / "attachments").iterdir()
    assert item(found(tmp_path / "run"), f"copy:{copy.name}").status is Finding.INTACT
    copy.write_bytes(b"forged")
    assert item(found(tmp_path / "run"), f"copy:{copy.name}").status is Finding.CHANGED
    (copy.parent / "note.txt").write_bytes(b"mine")
    assert item(found(tmp_path / "run"), "copy:note.txt").status is Finding.NOT_CHECKED


def test_the_list_of_losses_is_bounded_and_says_so(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request(process=another_process()))
    with session.open_journal() as journal:
        journal.write(codec.encode_mark(header(session)))
        journal.write(b"{torn\n" * (MAX_LOSSES_LISTED + 50))
    (one,) = found(tmp_path / "run").journals
    assert (len(one.losses), one.losses_left_out, one.account.losses) == (MAX_LOSSES_LISTED, 50, MAX_LOSSES_LISTED + 50)


def test_nothing_is_changed_by_looking(run_dir: Path) -> None:
    def state() -> list[tuple[str, int, bytes]]:
        files = [path for path in sorted(run_dir.rglob("*")) if path.is_file()]
        return [(str(path), path.stat().st_mtime_ns, path.read_bytes()) for path in files]

    before = state()
    found(run_dir)
    assert state() == before
