"""A drain looks at each file a fixed number of times, however many bundles it takes (PF-7, ST-7)."""

from collections import Counter
from pathlib import Path

import pytest

from paritrace.files import Files, Primitives
from paritrace.store import choosing
from paritrace.store.records import RemarkKind
from paritrace.store.targets import Put
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.throttle import Throttle
from paritrace.store.verifying import StoreVerdict, verify_store
from tests.store.places import QUICK, Place
from tests.store.reading import manifests, streams

SEGMENTS = 10


class Counting(Primitives):
    """Counts every look at a file of the rank and every byte that is read; nothing is forced to disk."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        self.counts["open"] += 1
        return super().open(path, flags, mode)

    def lstat(self, path: Path | str) -> object:  # type: ignore[override]
        self.counts["lstat"] += 1
        return super().lstat(path)

    def fstat(self, fd: int) -> object:  # type: ignore[override]
        self.counts["fstat"] += 1
        return super().fstat(fd)

    def names(self, path: Path) -> list[str]:
        self.counts["names"] += 1
        return super().names(path)

    def read(self, fd: int, num_bytes: int) -> bytes:
        self.counts["read"] += 1
        return super().read(fd, num_bytes)

    def fsync(self, fd: int) -> None:
        """No power is cut here."""


def counted(place: Place, *, files: int, name: str) -> Counter[str]:
    for number in range(files):
        place.write(f"{number % 7}/{number:04d}.{name}", b"%d\n" % number)
    primitives = Counting()
    report = place.syncer(files=Files(primitives)).final()
    assert report.bundles == files // SEGMENTS
    assert len(streams(place)) == files
    assert verify_store(place.target()).verdict is StoreVerdict.INTACT
    return primitives.counts


@pytest.fixture(autouse=True)
def small_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "MAX_SEGMENTS", SEGMENTS)


@pytest.mark.parametrize("name", ["bin", "jsonl"])
def test_pf7_twice_the_files_are_twice_the_looks(tmp_path: Path, name: str) -> None:
    few, many = (counted(Place(tmp_path / str(files)), files=files, name=name) for files in (60, 120))
    assert set(few) == {"open", "lstat", "fstat", "names", "read"}
    for operation, count in many.items():
        assert count <= 2 * few[operation], operation
    assert many["lstat"] < 120 * 8  # three looks of all files, and what each file and bundle takes itself


def test_st7_one_look_fills_bundles_in_turn_and_a_large_file_has_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"x" * 49 + b"\n" + b"y" * 79 + b"\n")
    place.write("b.bin", b"b" * 500)
    place.write("c.bin", b"c" * 60)
    place.write("d.bin", b"d" * 60)
    place.final(batch_bytes=100)
    paths = [[segment.path for segment in manifest.segments] for manifest in manifests(place)]
    assert paths == [["a.jsonl"], ["a.jsonl"], ["b.bin"], ["c.bin"], ["d.bin"]]
    assert streams(place)["a.jsonl", 1] == (place.originals / "a.jsonl").read_bytes()


class _Meanwhile(DirectoryTarget):
    """Once the first bundle is out, one file of the rank is gone and another one is written anew."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.store, files=QUICK, clock=place.clock)
        self._originals = place.originals

    def put_if_absent(self, name: str, source: Path, /, *, sha256: str, throttle: Throttle, checksum: str = "") -> Put:
        done = super().put_if_absent(name, source, sha256=sha256, throttle=throttle, checksum=checksum)
        if "/00000001-" in name:
            (self._originals / "25.bin").unlink()
            (self._originals / "28.bin").write_bytes(b"anew")
        return done


def test_st18_what_goes_away_or_changes_while_it_waits_in_a_drain_is_told_as_in_any_sync(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in range(SEGMENTS * 3):
        place.write(f"{number:02d}.bin", b"%d" % number)
    report = place.syncer(target=_Meanwhile(place)).final()
    assert [(one.kind, one.path) for one in report.remarks] == [(RemarkKind.VANISHED, "25.bin")]
    found = streams(place)
    assert ("25.bin", 1) not in found
    assert found["28.bin", 1] == b"anew"
    assert len(found) == SEGMENTS * 3 - 1
    assert place.final().published == ()


def test_st21_a_journal_that_was_renamed_is_told_although_its_turn_comes_in_a_later_bundle(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.append("z.jsonl", b"1\n")
    place.once()
    (place.originals / "z.jsonl").rename(place.originals / "z.jsonl.1")
    for number in range(SEGMENTS * 2):
        place.write(f"{number:02d}.bin", b"%d" % number)
    place.final()
    moved = [one.path for manifest in manifests(place) for one in manifest.segments if one.origin == "z.jsonl"]
    assert moved == ["z.jsonl", "z.jsonl.1"]
