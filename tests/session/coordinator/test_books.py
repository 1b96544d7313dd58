"""A journal that cannot be written stops nobody (SE-15)."""

import errno
import os
from pathlib import Path

import pytest

from paritrace.files import Files, Primitives
from paritrace.session.coordinator.books import Books
from paritrace.session.coordinator.journaling import JournalWriter
from paritrace.session.coordinator.ring import Ring
from paritrace.session.opening import read_journal


class FullDisk(Primitives):
    """Takes no byte while `full`."""

    full = False

    def write(self, fd: int, data: memoryview) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(fd, data)


@pytest.fixture
def disk() -> FullDisk:
    return FullDisk()


def test_se15_lines_are_counted_while_the_disk_is_full_and_told_of_afterwards(tmp_path: Path, disk: FullDisk) -> None:
    ring = Ring()
    books = Books(JournalWriter(tmp_path, sequence=0, files=Files(disk)), ring)
    first = {"format": "paritrace-session-journal", "version": "1.0"}
    books.line("opened", first, generation=1, durable=True)
    disk.full = True
    books.line("epoch", {"epoch": 1}, generation=1)
    books.line("epoch", {"epoch": 2}, generation=1)
    assert list(books.warnings) == ["2 lines of the journal could not be written"]
    disk.full = False
    books.line("epoch", {"epoch": 3}, generation=1)
    books.close()
    assert list(books.warnings) == []
    told = [(line.what, line.facts) for line in read_journal(tmp_path).lines]
    assert told == [
        ("opened", first),
        ("warning", {"words": "2 lines before this one could not be written"}),
        ("epoch", {"epoch": 3}),
    ]
    assert [event.facts.get("epoch") for event in ring.since(0).events] == [None, 1, 2, 3]


def test_se36_a_warning_is_told_once(tmp_path: Path) -> None:
    books = Books(JournalWriter(tmp_path, sequence=0), Ring())
    for _ in range(3):
        books.warn("slow disk", generation=1, rank=1)
    books.warn("slow disk", generation=1, rank=0)
    assert books.warnings == ("rank 1: slow disk", "rank 0: slow disk")
    books.close()
    assert (tmp_path / "journal.jsonl").read_bytes().count(b"\n") == 2


def test_se15_lines_are_numbered_on_through_all_coordinators(tmp_path: Path) -> None:
    for sequence in (0, 1):
        writer = JournalWriter(tmp_path, sequence=sequence)
        writer.write("opened", {"format": "paritrace-session-journal", "version": "1.0"}, generation=1)
        writer.close()
    assert [line.sequence for line in read_journal(tmp_path).lines] == [1, 2]
