"""Streams lie at their last places at once, and where another takes the place they are moved (ST-4, ST-11, PF-7)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError
from paritrace.files import Files, Primitives
from paritrace.store.restoring import restore
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.testing.faults import Fault, FaultyFiles, Stopped
from tests.store.places import QUICK, Place
from tests.store.test_restoring import bundle, flip, restored


class Counting(Primitives):
    """Counts the names that are given."""

    def __init__(self) -> None:
        self.renamed: list[str] = []

    def rename(self, source: Path, target: Path) -> None:
        self.renamed.append(target.name)
        super().rename(source, target)


def test_pf7_a_file_that_was_published_once_is_written_where_it_stays(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in range(20):
        place.write(f"deep/{number % 3}/{number}.bin", b"%d" % number)
    place.final()
    primitives = Counting()
    assert len(restored(place.store, tmp_path / "back", files=Files(primitives))) == 20
    assert primitives.renamed == []


def test_st11_a_folder_that_became_a_file_and_a_folder_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("x/deep/y", b"inside")
    place.write("other/z", b"z")
    place.once()
    for name in ("x/deep/y", "x/deep", "x"):
        path = place.originals / name
        path.rmdir() if path.is_dir() else path.unlink()
    place.write("x", b"file")
    place.once()
    assert restored(place.store, tmp_path / "file") == {
        "rank-0/x": b"file",
        "rank-0/other/z": b"z",
        ".paritrace-versions/n0/rank-0/x/deep/y.v1": b"inside",
    }
    (place.originals / "x").unlink()
    place.write("x/deep/y", b"anew")
    place.final()
    assert restored(place.store, tmp_path / "folder") == {
        "rank-0/x/deep/y": b"anew",
        "rank-0/other/z": b"z",
        ".paritrace-versions/n0/rank-0/x.v1": b"file",
        ".paritrace-versions/n0/rank-0/x/deep/y.v1": b"inside",
    }


def test_st11_paths_that_were_exchanged(tmp_path: Path) -> None:
    place = Place(tmp_path)
    one, two = place.write("a.jsonl", b"1\n"), place.write("b.jsonl", b"2\n")
    place.once()
    one.rename(place.originals / "c")
    two.rename(one)
    (place.originals / "c").rename(two)
    place.append("a.jsonl", b"two\n")
    place.append("b.jsonl", b"one\n")
    place.final()
    assert restored(place.store, tmp_path / "back") == {
        "rank-0/a.jsonl": (place.originals / "a.jsonl").read_bytes(),
        "rank-0/b.jsonl": (place.originals / "b.jsonl").read_bytes(),
    }


def test_st11_an_empty_folder_where_a_file_was_leaves_the_file(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("x", b"file")
    place.once()
    (place.originals / "x").unlink()
    (place.originals / "x").mkdir()
    place.final()
    assert restored(place.store, tmp_path / "back") == {"rank-0/x": b"file"}


def test_st11_a_name_that_the_destination_takes_for_another_is_refused(tmp_path: Path) -> None:
    class IgnoringCase(Primitives):
        def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
            return super().open(path.with_name(path.name.lower()), flags, mode)

    place = Place(tmp_path)
    place.write("a.bin", b"small")
    place.write("A.bin", b"large")
    place.final()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(HostError) as caught:
        restore(place.target(), tmp_path / "back", files=Files(IgnoringCase()))
    assert caught.value.code == "already_there"
    assert sorted(tmp_path.iterdir()) == before


class _ChangesBetween(DirectoryTarget):
    """The second bundle is damaged once it was read."""

    def read(self, name: str, /) -> Iterator[bytes]:
        yield from super().read(name)
        if "/00000002-" in name:
            flip(self.root / name)


def test_st11_a_store_that_changes_between_checking_and_writing_is_refused_also_in_part(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in range(3):
        place.append("a.jsonl", b'{"n":%d}\n' % number * 400)
        place.once()
    flip(bundle(place.store, 3))
    with pytest.raises(EvidenceError) as caught:
        restore(_ChangesBetween(place.store), tmp_path / "back", partial=True, files=QUICK)
    assert caught.value.code == "damaged_store"
    assert any("00000002" in line for line in caught.value.details)
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("fault", [Fault.STOP, Fault.FAIL, Fault.DONE_THEN_STOP])
def test_st11_a_restore_that_is_ended_at_any_operation_is_whole_or_not_there(tmp_path: Path, fault: Fault) -> None:
    place = Place(tmp_path)
    for data in (b"one", b"two"):
        place.write("x.bin", data)
        place.write("t/y.bin", data)
        place.once()
    place.final()
    at = 0
    while True:
        at += 1
        back, files = tmp_path / f"back{at}", FaultyFiles(at=at, fault=fault)
        try:
            restore(place.target(), back, files=files)
        except (Stopped, HostError):
            files.faulty.release()
        if back.exists():
            assert (back / "rank-0" / "x.bin").read_bytes() == b"two"
            assert (back / "restore.json").exists()
        if not files.faulty.happened:
            break
    assert at > 20
    assert back.exists()
