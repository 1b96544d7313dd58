"""A writer never edits a torn tail: it starts on a new line and says which bytes are lost (EV-7, C-01)."""

import errno
from pathlib import Path

import pytest

from paritrace.errors import HostError
from paritrace.evidence import codec
from paritrace.evidence.calls import LossOfBytes, Name
from paritrace.evidence.journal import JournalReader, Loss, LossReason
from paritrace.files import LOCAL
from paritrace.runs.journals import continue_journal, write_lines
from paritrace.testing.faults import Fault, FaultyFiles
from paritrace.testing.strategies import HEADER

HEAD = codec.encode_mark(HEADER)
FIRST, SECOND, THIRD = (codec.encode_mark(Name(number, "x")) for number in range(3))


def test_a_torn_tail_is_named_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(HEAD + FIRST + SECOND[:9])
    with continue_journal(path) as journal:
        write_lines(journal, THIRD)
    assert path.read_bytes().startswith(HEAD + FIRST + SECOND[:9] + b"\n")
    items = list(JournalReader(LOCAL.iter_chunks(path), name="j"))
    torn = len(HEAD + FIRST)
    assert items[-2:] == [LossOfBytes(offset=torn, length=9), Name(2, "x")]
    (loss,) = [item for item in items if isinstance(item, Loss)]
    assert (loss.offset, loss.length, loss.reason) == (torn, 10, LossReason.MALFORMED)


def test_a_whole_journal_is_continued_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(HEAD + FIRST)
    with continue_journal(path) as journal:
        assert write_lines(journal, SECOND) == len(HEAD + FIRST)
    assert path.read_bytes() == HEAD + FIRST + SECOND


def test_a_full_disk_in_the_middle_of_a_line_is_named_once_there_is_space(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    files = FaultyFiles(at=3, fault=Fault.TEAR, number=errno.ENOSPC)
    with files.append_new(path) as journal:
        write_lines(journal, HEAD)
        with pytest.raises(HostError):
            write_lines(journal, FIRST)
        write_lines(journal, SECOND)
    items = list(JournalReader(LOCAL.iter_chunks(path), name="j"))
    assert [type(item).__name__ for item in items] == ["JournalHeader", "Loss", "LossOfBytes", "Name"]
    loss, named = items[1], items[2]
    assert isinstance(loss, Loss)
    assert isinstance(named, LossOfBytes)
    assert (loss.offset, loss.length) == (named.offset, named.length + 1)


def test_a_journal_that_cannot_be_continued_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(HEAD + FIRST[:9])
    for at in range(1, 4):
        with pytest.raises(HostError):
            continue_journal(path, files=FaultyFiles(at=at, fault=Fault.FAIL, number=errno.EIO))
        assert path.read_bytes() == HEAD + FIRST[:9]
