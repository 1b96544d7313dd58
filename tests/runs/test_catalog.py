"""Listing runs: two of one id are both flagged, jobs are offered together, damage is told (EV-16, EV-21)."""

from pathlib import Path

from msgspec.structs import replace

from paritrace.runs.catalog import MAX_DEPTH, catalog
from paritrace.runs.opening import begin_session
from paritrace.runs.pack import pack
from paritrace.runs.removal import REMOVED_PREFIX
from tests.runs.making import another_process, capture, request, torchrun


def test_runs_in_folders_and_archives_are_listed(tmp_path: Path) -> None:
    capture(tmp_path / "team" / "a")
    begin_session(tmp_path / "b", replace(request(process=another_process()), run_id="run-2", title="second"))
    pack(tmp_path / "b", tmp_path / "b.tar.zst")
    found = catalog(tmp_path)
    by_path = {Path(line.path).name: line for line in found.runs}
    assert set(by_path) == {"a", "b", "b.tar.zst"}
    assert by_path["a"].statuses == {"completed": 1}
    assert by_path["b"].statuses == by_path["b.tar.zst"].statuses == {"interrupted": 1}
    assert (by_path["b"].title, by_path["b"].archive, by_path["b.tar.zst"].archive) == ("second", False, True)
    assert found.unreadable == ()


def test_two_envelopes_of_one_run_id_are_both_listed_and_neither_chosen(tmp_path: Path) -> None:
    capture(tmp_path / "one")
    capture(tmp_path / "two")
    found = catalog(tmp_path)
    assert len(found.runs) == 2
    assert found.same_run_id == {"run-1": (str(tmp_path / "one"), str(tmp_path / "two"))}


def test_sessions_of_one_job_are_offered_together(tmp_path: Path) -> None:
    for name, rank in (("one", 0), ("two", 1)):
        begin_session(tmp_path / name, replace(request(torchrun(rank)), run_id=name))
    begin_session(tmp_path / "three", replace(request(torchrun(0, job="job-2")), run_id="three"))
    found = catalog(tmp_path)
    assert found.same_job == {"job-1": (str(tmp_path / "one"), str(tmp_path / "two"))}
    assert found.same_run_id == {}


def test_damage_is_listed_and_hides_nothing_else(tmp_path: Path) -> None:
    capture(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_bytes(b"")
    (tmp_path / "bad.tar.zst").write_bytes(b"no archive")
    (tmp_path / "note.txt").write_bytes(b"nothing of ours")
    found = catalog(tmp_path)
    assert [Path(line.path).name for line in found.runs] == ["good"]
    assert {Path(one.path).name: one.code for one in found.unreadable} == {
        "bad": "invalid_document",
        "bad.tar.zst": "bad_archive",
    }


def test_a_run_itself_may_be_named(tmp_path: Path) -> None:
    capture(tmp_path / "run")
    assert [line.run_id for line in catalog(tmp_path / "run").runs] == ["run-1"]


def test_links_are_not_followed_and_depth_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(".")
    deep = tmp_path.joinpath(*["d"] * (MAX_DEPTH + 2))
    capture(deep / "run")
    found = catalog(tmp_path)
    assert found.runs == ()
    assert len(found.not_entered) == 1
    assert len(catalog(deep.parent).runs) == 1


def test_a_removal_that_was_cut_off_is_told(tmp_path: Path) -> None:
    (tmp_path / f"{REMOVED_PREFIX}0123").mkdir()
    assert catalog(tmp_path).cut_off_removals == (str(tmp_path / f"{REMOVED_PREFIX}0123"),)


def test_an_empty_folder_has_no_runs(tmp_path: Path) -> None:
    assert catalog(tmp_path).runs == ()
