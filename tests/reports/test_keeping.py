"""Kept results: named by their sources' digests, whole or not a result, found again (P3, P4, P9)."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.clock import Clock
from paritrace.compare.result import Comparison
from paritrace.errors import EvidenceError, HostError, RequestError
from paritrace.files import LOCAL, Files, Primitives
from paritrace.reports.keeping import Keeping, default_directory, keep, remember, write_one
from paritrace.reports.kept_result import last_result, open_result
from paritrace.reports.manifest import VERSION, SourceFile
from tests.reports import call_rows, comparisons

SOURCE = SourceFile(side="baseline", session_id="session-a", path="sessions/session-a/calls.jsonl", size=3, sha256="ab")


class At(Clock):
    """A clock that stands at one time."""

    def __init__(self, wall: int) -> None:
        self._wall = wall

    def wall_ns(self) -> int:
        return self._wall


def keeping(comparison: Comparison | None = None, *, candidate: Path | None = None) -> Keeping:
    found = comparison or comparisons.parted()
    if candidate is not None:
        found = replace(found, candidate=replace(found.candidate, path=str(candidate)))
    return Keeping(comparison=found, rows=call_rows.rows(), sources=(SOURCE,), made_by="paritrace 0")


def kept(directory: Path, *, files: Files = LOCAL) -> Comparison:
    return keep(keeping(), directory, files=files)


def test_p3_manifest_names_every_file_and_source_by_its_digest(tmp_path: Path) -> None:
    kept(tmp_path / "result")
    manifest = json.loads((tmp_path / "result" / "manifest.json").read_bytes())
    assert [entry["path"] for entry in manifest["files"]] == ["calls.parquet", "first_screen.txt", "comparison.json"]
    for entry in manifest["files"]:
        data = (tmp_path / "result" / entry["path"]).read_bytes()
        assert (entry["size"], entry["sha256"]) == (len(data), sha256(data).hexdigest())
    assert manifest["sources"][0]["path"] == "sessions/session-a/calls.jsonl"
    assert manifest["baseline"]["digest"] == "a" * 64
    assert manifest["key"] == keeping().key()


def test_p3_the_key_follows_from_sources_settings_and_version_only() -> None:
    key = keeping().key()
    other_run = replace(comparisons.parted(), baseline=replace(comparisons.parted().baseline, digest="c" * 64))
    assert keeping(replace(comparisons.parted(), changed=())).key() == key
    assert keeping(other_run).key() != key
    assert keeping(replace(comparisons.parted(), settings={"steps": "0:1"})).key() != key
    assert replace(keeping(), sources=(replace(SOURCE, sha256="cd"),)).key() != key
    assert replace(keeping(), made_by="paritrace 1").key() != key


def test_the_kept_documents_are_the_same_bytes_again(tmp_path: Path) -> None:
    kept(tmp_path / "one")
    kept(tmp_path / "two")
    for name in ("comparison.json", "calls.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    kept(tmp_path / "one")  # the same result into the same folder


def test_p3_another_result_is_never_written_over(tmp_path: Path) -> None:
    kept(tmp_path)
    before = (tmp_path / "manifest.json").read_bytes()
    other = keeping(replace(comparisons.parted(), settings={"steps": "0:1"}))
    with pytest.raises(RequestError, match="holds something else") as raised:
        keep(other, tmp_path, files=LOCAL)
    assert (raised.value.code, raised.value.outcome) == ("another_result", "refused")
    assert (tmp_path / "manifest.json").read_bytes() == before


def test_p3_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RequestError, match="holds something else"):
        kept(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


class FailingAt(Primitives):
    """Fails the n-th operation that changes a file."""

    def __init__(self, failing: int) -> None:
        self.left = failing

    def before(self, operation: str, path: str) -> None:
        if operation in ("write", "fsync", "rename", "mkdir"):
            self.left -= 1
            if self.left == 0:
                raise OSError(28, "No space left on device")


@pytest.mark.parametrize("failing", range(1, 24))
def test_p4_a_failure_leaves_a_whole_result_or_none_and_the_next_attempt_mends_it(tmp_path: Path, failing: int) -> None:
    primitives = FailingAt(failing)
    try:
        kept(tmp_path / "result", files=Files(primitives))
        failed = False
    except HostError:
        failed = True
    assert failed == (primitives.left <= 0)
    if (tmp_path / "result" / "manifest.json").exists():
        assert open_result(tmp_path / "result", files=LOCAL).comparison.counts == comparisons.parted().counts
    else:
        with pytest.raises(RequestError, match="there is no comparison"):
            open_result(tmp_path / "result", files=LOCAL)
    kept(tmp_path / "result")
    assert open_result(tmp_path / "result", files=LOCAL).manifest.key == keeping().key()


def test_a_result_opens_by_folder_by_file_and_by_its_candidate(tmp_path: Path) -> None:
    one = keeping(candidate=tmp_path / "B")
    directory = default_directory(one)
    assert directory == tmp_path / "B" / "comparisons" / "run-a" / one.key()[:16]
    keep(one, directory, files=LOCAL)
    remember(one, files=LOCAL, clock=At(1))
    for place in (directory, directory / "calls.parquet", directory / "manifest.json", tmp_path / "B"):
        assert open_result(place, files=LOCAL).directory == directory


def test_a_run_id_of_dots_stays_below_the_candidate(tmp_path: Path) -> None:
    one = keeping(candidate=tmp_path)
    dots = replace(one, comparison=replace(one.comparison, baseline=replace(one.comparison.baseline, run_id="..")))
    assert default_directory(dots).parent == tmp_path / "comparisons" / "_.."


def test_the_last_result_is_found_among_runs_here_and_one_folder_below(tmp_path: Path) -> None:
    for time, run in ((5, "runs/B"), (9, "C"), (7, "D")):
        one = keeping(candidate=tmp_path / run)
        keep(one, default_directory(one), files=LOCAL)
        remember(one, files=LOCAL, clock=At(time))
    assert last_result(tmp_path, files=LOCAL).directory.is_relative_to(tmp_path / "C")
    assert last_result(tmp_path / "runs", files=LOCAL).directory.is_relative_to(tmp_path / "runs" / "B")


def test_p2_two_results_of_the_same_moment_are_not_chosen_between(tmp_path: Path) -> None:
    for run in ("B", "C"):
        one = keeping(candidate=tmp_path / run)
        keep(one, default_directory(one), files=LOCAL)
        remember(one, files=LOCAL, clock=At(3))
    with pytest.raises(RequestError, match="at the same time"):
        last_result(tmp_path, files=LOCAL)


def test_no_result_here_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no comparison was made") as raised:
        last_result(tmp_path, files=LOCAL)
    assert "paritrace compare" in raised.value.fix


@pytest.mark.parametrize("damage", [b"{}", b"", b"\xff", b'{"x":' + b"[" * 100_000, None])
def test_a_damaged_result_is_refused_with_its_name(tmp_path: Path, damage: bytes | None) -> None:
    kept(tmp_path)
    path = tmp_path / "comparison.json"
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    with pytest.raises(EvidenceError, match=r"comparison\.json") as raised:
        open_result(tmp_path, files=LOCAL)
    assert raised.value.code == "damaged_result"


def test_a_manifest_of_another_version_is_refused(tmp_path: Path) -> None:
    kept(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_bytes(path.read_bytes().replace(f'"version": "{VERSION}"'.encode(), b'"version": "9.0"', 1))
    with pytest.raises(EvidenceError, match=r"9\.0"):
        open_result(tmp_path, files=LOCAL)


@pytest.mark.parametrize(("name", "start"), [("text", b"[F1]"), ("json", b"{"), ("parquet", b"PAR1")])
def test_su4_one_document_under_the_name_the_user_gave(tmp_path: Path, name: str, start: bytes) -> None:
    write_one(keeping(), tmp_path / "mine", name=name, files=LOCAL)
    assert (tmp_path / "mine").read_bytes().startswith(start)
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]
