"""C-17: what Python's json takes in silence or answers with a traceback is a fault of its line; others are read."""

import pytest

from paritrace.evidence import codec
from paritrace.evidence.calls import Name
from paritrace.evidence.journal import JournalReader, Loss
from paritrace.testing.strategies import HEADER

BAD = {
    "NaN": b'{"type":"name","id":NaN,"text":"x"}',
    "overflow": b'{"type":"name","id":1e400,"text":"x"}',
    "duplicate key": b'{"type":"name","id":1,"id":0,"text":"x"}',
    "boolean for integer": b'{"type":"name","id":true,"text":"x"}',
    "lone surrogate": b'{"type":"name","id":1,"text":"\\ud800"}',
    "5000 digits": b'{"type":"name","id":' + b"9" * 5000 + b',"text":"x"}',
    "100,000 arrays": b'{"type":"name","id":1,"text":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("name", list(BAD))
def test_the_line_is_flagged_and_the_others_are_read(name: str) -> None:
    good = codec.encode_mark(Name(7, "kept"))
    start = len(codec.encode_mark(HEADER) + good)
    items = list(JournalReader([codec.encode_mark(HEADER) + good + BAD[name] + b"\n" + good], name="j"))
    assert [item for item in items if isinstance(item, Name)] == [Name(7, "kept"), Name(7, "kept")]
    (loss,) = [item for item in items if isinstance(item, Loss)]
    assert (loss.line, loss.offset, loss.length) == (3, start, len(BAD[name]) + 1)
