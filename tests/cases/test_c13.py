"""C-13: a file that changes while it is taken: a bundle holds the bytes that were hashed, or it is read again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError
from paritrace.files import Files, Primitives
from paritrace.files.opened import OpenedFile
from paritrace.store.records import RemarkKind
from tests.store.places import Place
from tests.store.reading import streams


class Meddling(Files):
    """Calls `meddle` each time that the file of a name was opened, or read, with the number of that time."""

    def __init__(self, watched: str, meddle: Callable[[int], object], *, after_reading: bool = False) -> None:
        super().__init__(Quick())
        self._watched, self._meddle, self._after_reading = watched, meddle, after_reading
        self._times = 0

    @contextmanager
    def opened(self, path: Path) -> Iterator[OpenedFile]:
        with super().opened(path) as opened:
            if path.name != self._watched:
                yield opened
            elif self._after_reading:
                yield Watched(opened, self.happen)
            else:
                self.happen()
                yield opened

    def happen(self) -> None:
        self._times += 1
        self._meddle(self._times)


class Watched(OpenedFile):
    def __init__(self, opened: OpenedFile, after: Callable[[], None]) -> None:
        super().__init__(opened._primitives, opened._path, opened._fd)
        self._after = after

    def chunks(self, start: int, length: int) -> Iterator[bytes]:
        yield from super().chunks(start, length)
        self._after()


class Quick(Primitives):
    def fsync(self, fd: int) -> None:
        """Nothing is forced to disk: no power is cut here."""


@pytest.mark.parametrize("time", [1, 2])
def test_a_writer_that_appends_while_its_journal_is_taken(tmp_path: Path, time: int) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    files = Meddling("a.jsonl", lambda now: place.append("a.jsonl", b"2\n") if now == time else None)
    place.syncer(files=files).once()
    assert streams(place) == {("a.jsonl", 1): b"1\n" * 1 + (b"2\n" if time == 1 else b"")}
    place.final()
    assert streams(place) == {("a.jsonl", 1): b"1\n2\n"}


@pytest.mark.parametrize("time", [1, 2])
def test_a_file_that_changes_once_is_read_again(tmp_path: Path, time: int) -> None:
    place = Place(tmp_path)
    path = place.write("x.bin", b"old state")
    files = Meddling("x.bin", lambda now: path.write_bytes(b"new") if now == time else None)
    place.syncer(files=files).once()
    place.final()
    assert set(streams(place).values()) <= {b"old state", b"new"}
    assert b"new" in streams(place).values()


def test_a_file_that_changes_at_every_try_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("x.bin", b"0")
    place.write("a.jsonl", b"1\n")
    with path.open("ab") as growing:

        def grow(_: int) -> None:
            growing.write(b"0")
            growing.flush()

        report = place.syncer(files=Meddling("x.bin", grow, after_reading=True)).once()
    assert [(remark.kind, remark.path) for remark in report.transient] == [(RemarkKind.CHANGED_WHILE_READ, "x.bin")]
    assert streams(place) == {("a.jsonl", 1): b"1\n"}
    place.final()
    assert streams(place)["x.bin", 1] == path.read_bytes()


def test_a_source_that_is_another_at_every_building_fails_and_publishes_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("a.jsonl", b"1111\n")
    files = Meddling("a.jsonl", lambda now: path.write_bytes(b"%04d\n" % now))
    with pytest.raises(EvidenceError) as caught:
        place.syncer(files=files).once()
    assert caught.value.code == "changed_while_read"
    assert place.bundles() == []
    place.final()
    assert streams(place) == {("a.jsonl", 1): path.read_bytes()}
