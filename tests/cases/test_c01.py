"""C-01: a crash leaves half a record; the next append is not glued to it, and a glued line is told from a short one."""

from pathlib import Path

from paritrace.evidence import codec
from paritrace.evidence.calls import Name
from paritrace.evidence.journal import JournalReader, Loss, LossReason
from paritrace.files import LOCAL
from paritrace.runs.journals import continue_journal, write_lines
from paritrace.testing.strategies import HEADER

HEAD = codec.encode_mark(HEADER)
FIRST, SECOND, THIRD = (codec.encode_mark(Name(number, "x")) for number in range(3))


def test_our_writer_does_not_glue(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(HEAD + FIRST + SECOND[:12])
    with continue_journal(path) as journal:
        write_lines(journal, THIRD)
    items = list(JournalReader(LOCAL.iter_chunks(path), name="j"))
    assert [item for item in items if isinstance(item, Name)] == [Name(0, "x"), Name(2, "x")]
    assert sum(isinstance(item, Loss) for item in items) == 1


def test_a_line_that_somebody_glued_is_torn_and_says_where_a_whole_record_begins() -> None:
    reader = JournalReader([HEAD + FIRST + SECOND[:12] + THIRD + FIRST], name="j")
    items = list(reader)
    (loss,) = [item for item in items if isinstance(item, Loss)]
    start = len(HEAD + FIRST)
    assert (loss.line, loss.offset, loss.length, loss.reason) == (3, start, 12 + len(THIRD), LossReason.TORN)
    assert f"a whole record begins at byte {start + 12}, not used" in loss.detail
    assert [item for item in items if isinstance(item, Name)] == [Name(0, "x"), Name(0, "x")]
    assert reader.account.torn_bytes == loss.length


def test_the_line_of_the_report() -> None:
    """The input of the report itself, a journal of another tool's making behind our header."""
    items = list(JournalReader([HEAD + b'{"ts":1,"tok{"ts":2,"tokens":7}\n'], name="j"))
    (loss,) = [item for item in items if isinstance(item, Loss)]
    assert (loss.line, loss.reason) == (2, LossReason.MALFORMED)
