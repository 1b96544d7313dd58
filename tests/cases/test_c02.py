"""C-02: two processes write body and newline apart, so one line holds two values."""

from paritrace.evidence import codec
from paritrace.evidence.calls import Name
from paritrace.evidence.journal import JournalReader, Loss, LossReason
from paritrace.testing.strategies import HEADER

HEAD = codec.encode_mark(HEADER)
FIRST, SECOND = (codec.encode_mark(Name(number, "x")) for number in range(2))


def test_the_line_of_the_report() -> None:
    reader = JournalReader([HEAD + b'{"a":1}{"b":2}\n\n'], name="j")
    _, loss = reader
    assert isinstance(loss, Loss)
    assert (loss.line, loss.offset, loss.length, loss.reason) == (2, len(HEAD), 15, LossReason.SEVERAL_VALUES)
    assert loss.detail == f"byte {len(HEAD) + 7}: line holds 2 JSON values (extra data at byte 7)"
    account = reader.account
    assert (account.foreign_bytes, account.blank_lines) == (16, 1)
    assert account.record_bytes + account.foreign_bytes == account.size


def test_two_records_of_ours_on_one_line_are_not_read_as_the_first() -> None:
    items = list(JournalReader([HEAD + FIRST[:-1] + SECOND + b"\n" + FIRST], name="j"))
    assert [item for item in items if isinstance(item, Name)] == [Name(0, "x")]
    (loss,) = [item for item in items if isinstance(item, Loss)]
    assert loss.reason is LossReason.SEVERAL_VALUES
