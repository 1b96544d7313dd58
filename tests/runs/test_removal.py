"""rm removes only what is a run, never through a link, never while it may be written (EV-16, P4)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError, Outcome, ParitraceError
from paritrace.process.identity import own_identity
from paritrace.runs.opening import begin_session
from paritrace.runs.pack import pack
from paritrace.runs.removal import remove_run
from tests.runs.making import another_process, capture, request


def refused(path: Path) -> str:
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(ParitraceError) as caught:
        remove_run(path)
    assert caught.value.outcome is Outcome.REFUSED
    assert sorted(path.parent.rglob("*")) == before
    return caught.value.code


def test_a_run_is_removed_whole(tmp_path: Path) -> None:
    capture(tmp_path / "run")
    (tmp_path / "run" / "comparisons" / "x").mkdir(parents=True)
    (tmp_path / "run" / "comparisons" / "x" / "comparison.json").write_bytes(b"{}")
    (tmp_path / "run" / ".paritrace-0123.tmp").write_bytes(b"")
    total = sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file())
    removed = remove_run(tmp_path / "run")
    assert (removed.run_id, removed.num_files, removed.num_bytes) == ("run-1", 7, total)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_is_removed_and_other_files_are_not(tmp_path: Path) -> None:
    capture(tmp_path / "run")
    pack(tmp_path / "run", tmp_path / "run.tar.zst")
    remove_run(tmp_path / "run.tar.zst")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    (tmp_path / "thesis.tar.zst").write_bytes(b"important")
    assert refused(tmp_path / "thesis.tar.zst") == "bad_archive"


def test_a_folder_that_is_no_run_stays(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(b"x")
    assert refused(tmp_path / "data") == "not_a_run"


def test_a_folder_with_a_broken_envelope_stays(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_bytes(b"{}")
    assert refused(tmp_path / "run") == "invalid_document"


@pytest.mark.parametrize("name", ["checkpoint.pt", ".git", "sub"])
def test_a_run_with_other_peoples_files_stays(tmp_path: Path, name: str) -> None:
    capture(tmp_path / "run")
    (tmp_path / "run" / name).mkdir()
    assert refused(tmp_path / "run") == "foreign_content"


def test_a_link_to_a_run_stays(tmp_path: Path) -> None:
    capture(tmp_path / "run")
    (tmp_path / "link").symlink_to("run")
    assert refused(tmp_path / "link") == "not_a_run"


def test_links_inside_are_removed_and_not_followed(tmp_path: Path) -> None:
    capture(tmp_path / "run")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").write_bytes(b"x")
    (tmp_path / "run" / "sessions" / "away").symlink_to(tmp_path / "data")
    (tmp_path / "run" / "attachments" / "file").symlink_to(tmp_path / "data" / "precious")
    remove_run(tmp_path / "run")
    assert (tmp_path / "data" / "precious").read_bytes() == b"x"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_running_run_stays(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request())
    assert refused(tmp_path / "run") == "run_is_running"


@pytest.mark.parametrize("change", [{"host": "elsewhere"}, {"boot_id": "other"}, {"pid_namespace": "pid:[1]"}])
def test_a_run_that_nobody_can_check_here_stays(tmp_path: Path, change: dict[str, str]) -> None:
    begin_session(tmp_path / "run", request(process=replace(own_identity(), start_ticks=1, **change)))
    assert refused(tmp_path / "run") == "run_is_running"


def test_a_run_whose_owner_is_provably_gone_is_removed(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request(process=another_process()))
    remove_run(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        remove_run(tmp_path / "no")
    assert caught.value.code == "not_found"


def test_the_reason_is_in_the_message(tmp_path: Path) -> None:
    begin_session(tmp_path / "run", request())
    with pytest.raises(EvidenceError, match="rank-0 may be running"):
        remove_run(tmp_path / "run")
