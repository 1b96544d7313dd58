"""Claiming a run directory: one start joins, others are refused, a restart is an incarnation (EV-13, EV-14, EV-23)."""

import errno
import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError, Outcome, ParitraceError, RequestError
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.files import LOCAL
from paritrace.runs.documents import read_envelope
from paritrace.runs.envelope import ENVELOPE_NAME, Envelope
from paritrace.runs.opening import SessionRequest, begin_session
from paritrace.testing.clocks import ManualClock
from paritrace.testing.faults import ErrnoFiles, visible_files
from tests.runs.making import another_process, capture, request, torchrun


def envelope_of(run_dir: Path) -> Envelope:
    found = read_envelope(run_dir, files=LOCAL)
    assert found is not None
    return found


def refused(run_dir: Path, asked: SessionRequest) -> ParitraceError:
    before = {path: (run_dir / path).read_bytes() for path in visible_files(run_dir)}
    with pytest.raises(ParitraceError) as caught:
        begin_session(run_dir, asked)
    assert caught.value.outcome is Outcome.REFUSED
    assert {path: (run_dir / path).read_bytes() for path in visible_files(run_dir)} == before
    return caught.value


def test_a_session_is_entered_as_running(tmp_path: Path) -> None:
    clock = ManualClock()
    asked = replace(request(), title="a title", tags=("b", "a", "b"), metadata={"k": "v"})
    session = begin_session(tmp_path / "deep" / "run", asked, clock=clock)
    found = envelope_of(tmp_path / "deep" / "run")
    assert (found.run_id, found.title, found.tags, found.metadata) == ("run-1", "a title", ("a", "b"), {"k": "v"})
    assert found.created_at == "2025-11-29T07:06:40.000Z"
    (row,) = found.sessions
    assert (row.session_id, row.rank, row.status.value) == (session.session_id, 0, "running")
    assert row.started_unix_ns == clock.wall_ns()
    assert row.ended_unix_ns == Gap(RunGap.NOT_ENDED)
    assert row.process == asked.process
    assert session.directory.is_dir()


def test_a_run_id_is_made_when_none_is_given(tmp_path: Path) -> None:
    for name in ("a", "b"):
        begin_session(tmp_path / name, replace(request(), run_id=None))
    assert envelope_of(tmp_path / "a").run_id < envelope_of(tmp_path / "b").run_id


def test_ranks_of_one_start_join_in_any_order(tmp_path: Path) -> None:
    for rank in (1, 0):
        begin_session(tmp_path / "run", request(torchrun(rank)))
    found = envelope_of(tmp_path / "run")
    assert [row.session_id for row in found.sessions] == ["rank-0", "rank-1"]
    assert [row.world_size for row in found.sessions] == [2, 2]


def test_a_second_capture_by_the_same_process_is_refused(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request())
    assert refused(tmp_path / "run", request()).code == "session_exists"


def test_a_capture_of_another_process_is_refused(tmp_path: Path) -> None:
    capture(tmp_path / "run")
    assert refused(tmp_path / "run", request(process=another_process())).code == "run_exists"


def test_another_job_of_the_launcher_is_refused(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request(torchrun(0)))
    assert refused(tmp_path / "run", request(torchrun(1, job="job-2"))).code == "run_exists"


def test_a_restart_opens_an_incarnation_and_an_older_one_is_stale(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request(torchrun(0)))
    begin_session(tmp_path / "run", request(torchrun(0, restart=2)))
    found = envelope_of(tmp_path / "run")
    assert [(row.session_id, row.incarnation) for row in found.sessions] == [("rank-0", 0), ("rank-0.restart-2", 2)]
    assert refused(tmp_path / "run", request(torchrun(1, restart=1))).code == "stale_restart"


def test_another_configuration_is_refused(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request(torchrun(0)))
    assert refused(tmp_path / "run", replace(request(torchrun(1)), config_digest="d" * 64)).code == "config_conflict"


def test_another_run_id_is_refused(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request(torchrun(0)))
    error = refused(tmp_path / "run", replace(request(torchrun(1)), run_id="run-2"))
    assert isinstance(error, RequestError)
    assert error.code == "other_run"


def test_a_bad_run_id_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(RequestError):
        begin_session(tmp_path / "run", replace(request(), run_id="a/b"))
    assert list(tmp_path.iterdir()) == []


def test_a_rank_beyond_the_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        begin_session(tmp_path / "run", request(torchrun(2)))
    assert caught.value.code == "bad_launch_environment"


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("important")
    assert refused(tmp_path / "run", request()).code == "foreign_folder"


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    begin_session(tmp_path / "run", request())
    assert envelope_of(tmp_path / "run").run_id == "run-1"


def test_a_claim_that_a_kill_left_unfinished_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "run" / "sessions" / "rank-0").mkdir(parents=True)
    (tmp_path / "run" / ".lock").touch()
    begin_session(tmp_path / "run", request())
    assert len(envelope_of(tmp_path / "run").sessions) == 1


def test_files_of_a_session_that_nothing_names_are_never_taken_over(tmp_path: Path) -> None:
    (tmp_path / "run" / "sessions" / "rank-0").mkdir(parents=True)
    (tmp_path / "run" / "sessions" / "rank-0" / "calls.jsonl").write_text("evidence")
    assert refused(tmp_path / "run", request()).code == "foreign_folder"


def test_files_of_a_session_that_the_envelope_does_not_know_are_kept(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request(torchrun(0)))
    (tmp_path / "run" / "sessions" / "rank-1").mkdir()
    (tmp_path / "run" / "sessions" / "rank-1" / "calls.jsonl").write_text("evidence")
    assert refused(tmp_path / "run", request(torchrun(1))).code == "session_exists"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "invalid_document"),
        (b"{", "invalid_document"),
        (b"\0\0\0\0", "invalid_document"),
        (b'{"a": 1, "a": 2}', "invalid_document"),
        (b'{"format": "zarr", "version": "2.0"}', "foreign_run"),
        (b'{"format": "paritrace-run", "version": "2.0"}', "newer_version"),
        (b'{"format": "paritrace-run", "version": "1.0"}', "invalid_document"),
    ],
)
def test_an_envelope_that_is_not_valid_is_refused_and_never_overwritten(
    tmp_path: Path, content: bytes, code: str
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ENVELOPE_NAME).write_bytes(content)
    assert refused(tmp_path / "run", request()).code == code


def test_an_unknown_key_in_an_envelope_is_refused(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request(torchrun(0)))
    path = tmp_path / "run" / ENVELOPE_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), "mood": "calm"}))
    error = refused(tmp_path / "run", request(torchrun(1)))
    assert "unknown field `mood`" in error.message


def test_an_envelope_of_a_later_minor_version_is_not_rewritten(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request(torchrun(0)))
    path = tmp_path / "run" / ENVELOPE_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), "mood": "calm", "version": "1.9"}))
    assert refused(tmp_path / "run", request(torchrun(1))).code == "newer_version"


def test_a_run_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(HostError) as caught:
        begin_session(tmp_path / "run", request())
    assert caught.value.code == "not_a_folder"
    assert (tmp_path / "run").read_text() == "a file"


def test_a_symbolic_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to("disk")
    begin_session(tmp_path / "run", request())
    assert (tmp_path / "disk" / ENVELOPE_NAME).is_file()


@pytest.mark.parametrize(
    ("operation", "number", "code"),
    [
        ("mkdir", errno.EACCES, "not_permitted"),
        ("mkdir", errno.EROFS, "read_only"),
        ("lock", errno.ENOLCK, "no_locks"),
        ("write", errno.ENOSPC, "disk_full"),
        ("rename", errno.EXDEV, "cross_device"),
    ],
)
def test_what_the_host_refuses_is_told_with_its_mend(tmp_path: Path, operation: str, number: int, code: str) -> None:
    with pytest.raises(HostError) as caught:
        begin_session(tmp_path / "run", request(), files=ErrnoFiles(operation=operation, number=number))
    assert (caught.value.code, caught.value.outcome) == (code, Outcome.REFUSED)
    assert caught.value.fix
    begin_session(tmp_path / "run", request())  # and the next try succeeds


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(HostError) as caught:
        begin_session(tmp_path / "run", request())
    assert caught.value.code == "not_permitted"


def test_two_sessions_at_once_do_not_lose_each_other(tmp_path: Path) -> None:
    first = begin_session(tmp_path / "run", request(torchrun(0)))
    second = begin_session(tmp_path / "run", request(torchrun(1)))
    first.set_metadata({"who": "first"})
    second.set_metadata({"who": "second"})
    second.flush()
    first.flush()
    assert [row.metadata for row in envelope_of(tmp_path / "run").sessions] == [{"who": "first"}, {"who": "second"}]


def test_an_evidence_error_names_the_run_and_the_way_out(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request())
    with pytest.raises(EvidenceError, match="run-1") as caught:
        begin_session(tmp_path / "run", request(process=another_process()))
    assert "another run directory" in caught.value.fix
