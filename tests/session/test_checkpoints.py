"""Checkpoints on disk: whole or not there, and every reason against one that is not taken (SE-8, SE-10, F-11)."""

import errno
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError, RequestError
from paritrace.files import Files
from paritrace.session.checkpoint_choice import Candidate, Wanted, choice, reasons_against
from paritrace.session.checkpoint_records import Manifest, Origin, Receipt, Written, manifest_of
from paritrace.session.checkpoint_survey import latest
from paritrace.session.checkpoints import (
    checked_name,
    damages,
    keep,
    path_of,
    publish,
    read_checkpoint,
    seal,
    staging_of,
)
from paritrace.session.workload import Accepts, OfRank
from paritrace.testing.faults import Fault, FaultyPrimitives, Stopped

ORIGIN = Origin("session-1", "package:Class", 2, 1, 3, 4, 100, {"lr": 0.1}, {"digest": "inputs", "generation": 0})
WANTED = Wanted("package:Class", 2, "inputs")


def _written(staging: Path, *, files: Files | None = None, ranks: tuple[int, ...] = (0, 1)) -> None:
    """What each rank does: write, then seal."""
    used = files or Files()
    used.mkdir(staging)
    for rank in ranks:
        (staging / f"part-{rank}.bin").write_bytes(bytes([rank]) * 10)
        seal(staging, (f"part-{rank}.bin",), Receipt(rank, ORIGIN, 5 + rank, f"state-{rank}"), files=used)


def _facts(command_id: str, name: str = "one") -> dict[str, object]:
    return {"ranks": [{"name": name, "staging": staging_of(command_id)}]}


def test_se8_a_checkpoint_is_published_whole_with_its_manifest_last(tmp_path: Path) -> None:
    staging = tmp_path / "checkpoints" / staging_of("a/b ../c")
    _written(staging)
    told = keep(tmp_path, _facts("a/b ../c"))
    assert told["num_bytes"] == 20
    found = read_checkpoint(tmp_path / "checkpoints" / "one")
    assert found.digest == told["digest"]
    assert found.manifest.sharded
    assert found.manifest.state_digests == {"0": "state-0", "1": "state-1"}
    assert found.manifest.made_unix_ns == 6
    assert sorted(path.name for path in found.folder.iterdir()) == ["manifest.json", "part-0.bin", "part-1.bin"]
    assert all(damages(found, rank=rank, world_size=2) == () for rank in (0, 1))


def test_f15_a_rank_that_has_not_written_leaves_no_checkpoint(tmp_path: Path) -> None:
    staging = tmp_path / "checkpoints" / staging_of("x")
    _written(staging, ranks=(1,))
    with pytest.raises(EvidenceError, match="rank 0 has not written its receipt") as error:
        keep(tmp_path, _facts("x"))
    assert error.value.code == "not_a_checkpoint"
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_f07_ranks_that_stood_at_different_steps_or_wrote_one_name_make_no_checkpoint() -> None:
    file = Written(0, 1, "0" * 64)
    first = Receipt(0, ORIGIN, 1, files={"a": file})
    second = Receipt(1, replace(ORIGIN, step=99), 1, files={"a": replace(file, rank=1)})
    reasons = manifest_of([second, first])
    assert not isinstance(reasons, Manifest)
    assert [(reason.rank, reason.code) for reason in reasons] == [(1, "ranks_apart"), (1, "name_taken")]
    assert "another step" in reasons[0].words
    assert not isinstance(manifest_of([]), Manifest)
    assert not isinstance(manifest_of([replace(first, files={}), replace(first, rank=1, files={})]), Manifest)


@pytest.mark.parametrize("fault", list(Fault))
def test_se8_a_fault_at_any_operation_leaves_the_whole_checkpoint_or_none(tmp_path: Path, fault: Fault) -> None:
    at = 0
    while True:
        at += 1
        directory = tmp_path / str(at)
        staging = directory / "checkpoints" / staging_of("x")
        primitives = FaultyPrimitives(at=at, fault=fault, number=errno.ENOSPC)
        try:
            _written(staging, files=Files(primitives))
            keep(directory, _facts("x"), files=Files(primitives))
        except (HostError, EvidenceError, Stopped):
            pass
        path = directory / "checkpoints" / "one"
        if path.exists():
            found = read_checkpoint(path)
            assert damages(found, rank=0, world_size=1) == ()
        if not primitives.happened:
            break
    assert at > 20
    assert path.exists()


def test_f11_a_folder_without_a_manifest_is_ignored_and_named(tmp_path: Path) -> None:
    for name, step in (("early", 10), ("late", 20)):
        staging = tmp_path / "checkpoints" / f".{name}"
        _written(staging)
        made = publish(staging, tmp_path / "checkpoints" / name)
        assert made.manifest.origin.step == 100, step
    (tmp_path / "checkpoints" / "half").mkdir()
    (tmp_path / "checkpoints" / "torn").mkdir()
    (tmp_path / "checkpoints" / "torn" / "manifest.json").write_bytes(b'{"origin":')
    (tmp_path / "checkpoints" / "late" / "part-1.bin").unlink()
    found = latest(tmp_path, WANTED)
    assert found.chosen == "checkpoints/early"
    told = {one.name: one.reasons for one in found.rejected}
    assert "its save did not end" in told["checkpoints/half"][0]
    assert "its manifest cannot be read" in told["checkpoints/torn"][0]
    assert told["checkpoints/late"] == ("part-1.bin is missing",)


def test_se10_every_reason_against_a_candidate_is_told() -> None:
    manifest = manifest_of(
        [Receipt(rank, ORIGIN, 1, files={f"p{rank}": Written(rank, 4, "0" * 64)}) for rank in (0, 1)]
    )
    assert isinstance(manifest, Manifest)
    candidate = Candidate("checkpoints/x", manifest, {"p0": 3, "p1": None})
    assert reasons_against(candidate, Wanted("other:Class", 4, "more inputs")) == (
        "of workload package:Class, not other:Class",
        "sharded over 2 ranks, not 4",
        "saved with inputs inputs, not more inputs",
        "p0 has 3 bytes, 4 were saved",
        "p1 is missing",
    )
    whole = Candidate("checkpoints/y", manifest, {"p0": 4, "p1": 4})
    assert choice([candidate, whole], WANTED).chosen == "checkpoints/y"
    assert choice([candidate], WANTED).chosen is None
    later = Candidate("autosave/z", replace(manifest, made_unix_ns=2), {"p0": 4, "p1": 4})
    assert choice([later, whole], WANTED).chosen == "autosave/z"


def test_se8_what_another_number_of_ranks_does_without_makes_no_checkpoint_sharded(tmp_path: Path) -> None:
    staging = tmp_path / ".x"
    Files().mkdir(staging)
    for rank, names in ((0, ("state.bin", OfRank("random-0.bin"))), (1, (OfRank("random-1.bin"),))):
        for name in names:
            (staging / name).write_bytes(b"x")
        seal(staging, names, Receipt(rank, ORIGIN, 5))
    whole = publish(staging, tmp_path / "x").manifest
    assert (whole.sharded, whole.files["random-1.bin"].of_rank, whole.files["state.bin"].of_rank) == (
        False,
        True,
        False,
    )
    candidate = Candidate("checkpoints/x", whole, dict.fromkeys(whole.files, 1))
    assert reasons_against(candidate, replace(WANTED, world_size=7)) == ()


def test_se8_another_class_or_number_of_ranks_is_taken_where_the_workload_says_so() -> None:
    manifest = manifest_of([Receipt(rank, ORIGIN, 1, files={f"p{rank}": Written(rank, 4, "0")}) for rank in (0, 1)])
    assert isinstance(manifest, Manifest)
    candidate = Candidate("checkpoints/x", manifest, {"p0": 4, "p1": 4})
    other = Wanted("other:Class", 4, accepts=Accepts(("package:Class",), world_sizes=True))
    assert reasons_against(candidate, other) == ()
    assert reasons_against(candidate, replace(other, accepts=Accepts(("package:Other",)))) == (
        "of workload package:Class, not other:Class",
        "sharded over 2 ranks, not 4",
    )


def test_se8_a_manifest_of_a_later_format_is_refused(tmp_path: Path) -> None:
    _written(tmp_path / ".x")
    publish(tmp_path / ".x", tmp_path / "x")
    manifest = tmp_path / "x" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"version":"1.1"', b'"version":"2.0"'))
    with pytest.raises(EvidenceError, match=r"its format is paritrace-checkpoint 2\.0"):
        read_checkpoint(tmp_path / "x")


def test_se17_no_name_leads_out_of_the_session(tmp_path: Path) -> None:
    for name in ("", ".", "..", "../x", "/x", "a/b", ".hidden", "a\n", 7, None, "x" * 101):
        with pytest.raises(RequestError) as error:
            checked_name(name)
        assert error.value.code == "bad_name"
    for name in ("autosave/../x", "captures/x", "checkpoints/", "/etc"):
        with pytest.raises(RequestError):
            path_of(tmp_path, name)
    assert path_of(tmp_path, "autosave/x") == tmp_path / "autosave" / "x"
    assert path_of(tmp_path, "x") == tmp_path / "checkpoints" / "x"


@pytest.mark.parametrize("name", ["missing.bin", "../outside.bin", "/etc/hostname", "manifest.json"])
def test_se8_a_name_that_was_not_written_below_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.bin").write_bytes(b"x")
    staging = tmp_path / "staging"
    staging.mkdir()
    (staging / "manifest.json").write_bytes(b"{}")
    with pytest.raises(EvidenceError) as error:
        seal(staging, (name,), Receipt(0, ORIGIN, 1))
    assert error.value.code == "unsaved_file"


def test_se22_of_many_damaged_files_five_hundred_are_told_and_the_rest_is_counted(tmp_path: Path) -> None:
    staging = tmp_path / "checkpoints" / staging_of("x")
    _written(staging)
    keep(tmp_path, _facts("x"))
    found = read_checkpoint(tmp_path / "checkpoints" / "one")
    many = {f"part-{number}.pt": Written(0, 1, "") for number in range(600)}
    lines = damages(replace(found, manifest=replace(found.manifest, files=many)), rank=0, world_size=2)
    assert (len(lines), lines[-1]) == (501, "and 100 more")
