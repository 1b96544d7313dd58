"""A journal's reader: every byte accounted for, every loss placed, nothing intact dropped (EV-7, EV-8, EV-9)."""

import random
import tracemalloc
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.errors import EvidenceError
from paritrace.evidence import calls, codec, journal
from paritrace.evidence.calls import EndMark, Name
from paritrace.evidence.codec import Record
from paritrace.evidence.journal import Account, JournalReader, Loss, LossReason
from paritrace.testing.strategies import A_CALL, HEADER, damaged, journals, line_of

HEAD = codec.encode_mark(HEADER)
NAMES = [Name(number, f"slot {number}") for number in range(6)]
LINES = [codec.encode_mark(name) for name in NAMES]
CALL = replace(A_CALL, outputs=())


def read(data: bytes, *, chunk_bytes: int = 1 << 20) -> tuple[list[Record], list[Loss], Account]:
    reader = JournalReader(pieces(data, chunk_bytes), name="calls.jsonl")
    items = list(reader)
    records = [item for item in items if not isinstance(item, Loss)]
    return records, [item for item in items if isinstance(item, Loss)], reader.account


def pieces(data: bytes, chunk_bytes: int) -> Iterator[bytes]:
    for start in range(0, len(data), chunk_bytes):
        yield data[start : start + chunk_bytes]


def adds_up(account: Account, data: bytes) -> bool:
    sums = account.record_bytes + account.torn_bytes + account.foreign_bytes
    return account.size == len(data) == sums


def test_an_intact_journal_reads_whole() -> None:
    end = EndMark(lines=8, calls=1, details=0, states=0, gaps={})
    data = HEAD + b"".join(LINES) + line_of(CALL) + codec.encode_mark(end)
    records, losses, account = read(data)
    assert records == [HEADER, *NAMES, CALL, end]
    assert losses == []
    assert account.record_bytes == account.size == len(data)
    assert (account.header, account.end, account.calls, account.records) == (HEADER, end, 1, 9)


@pytest.mark.parametrize("chunk_bytes", [1, 2, 7, 64, 1 << 20])
def test_the_size_of_the_pieces_does_not_matter(chunk_bytes: int) -> None:
    data = HEAD + LINES[0] + b"{torn\n" + LINES[1] + b"\0\0\0" + LINES[2] + b"\n" + LINES[3] + LINES[4][:9]
    assert read(data, chunk_bytes=chunk_bytes) == read(data)


@given(journals, st.integers(1, 200))
def test_intact_journals_have_no_loss(data: bytes, chunk_bytes: int) -> None:
    _, losses, account = read(data, chunk_bytes=chunk_bytes)
    assert losses == []
    assert account.record_bytes == account.size == len(data)


@given(damaged(), st.integers(1, 300))
@example(b"", 1)
@example(b"\n\n\n", 1)
@example(b"\0" * 40, 7)
@example(codec.BOM, 1)
@example(codec.BOM * 2 + HEAD, 2)
@settings(max_examples=300)
def test_the_bytes_always_add_up(data: bytes, chunk_bytes: int) -> None:
    try:
        _, losses, account = read(data, chunk_bytes=chunk_bytes)
    except EvidenceError as refused:
        code = refused.code
    else:
        code = ""
    if code:
        assert code in ("foreign_journal", "newer_version")  # the damage met the header's format or version
        return
    assert adds_up(account, data)
    assert account.losses == len(losses)
    places = [(loss.offset, loss.offset + loss.length) for loss in losses]
    assert all(begin < end <= len(data) for begin, end in places)
    assert all(first[1] <= second[0] for first, second in pairwise(places))


@given(damaged())
def test_the_fast_path_and_the_careful_one_agree(data: bytes) -> None:
    class Careful(JournalReader):
        def _fast(self, block: bytes) -> Iterable[Record]:  # type: ignore[override]
            raise journal._Slow

    try:
        fast = read(data)
    except EvidenceError:
        return
    reader = Careful(pieces(data, 1 << 20), name="calls.jsonl")
    items = list(reader)
    assert [item for item in items if not isinstance(item, Loss)] == fast[0]
    assert reader.account == fast[2]


def test_a_thousand_damaged_journals_never_raise_and_never_hide_a_loss() -> None:
    """Flips and cuts anywhere: the reader ends, adds up, and yields no record that was not written."""
    rng = random.Random(20_260_101)
    rows = [replace(CALL, id=number) for number in range(40)]
    data = HEAD + b"".join(LINES) + b"".join(map(line_of, rows))
    lines = data.split(b"\n")
    for _ in range(1000):
        bad = bytearray(data)
        if rng.random() < 0.3:
            del bad[rng.randrange(len(HEAD), len(bad)) :]
        else:
            bad[rng.randrange(len(HEAD), len(bad))] ^= rng.randrange(1, 256)
        records, losses, account = read(bytes(bad))
        assert adds_up(account, bytes(bad))
        written = sum(line in lines for line in bytes(bad).split(b"\n")[:-1])
        assert len(records) >= written
        if len(records) < len(rows) + len(LINES) + 1:
            assert losses or len(bad) < len(data)


def test_an_unfinished_last_line_is_torn() -> None:
    records, losses, account = read(HEAD + LINES[0] + LINES[1][:-5])
    assert records == [HEADER, NAMES[0]]
    start = len(HEAD + LINES[0])
    assert losses == [Loss(start, len(LINES[1]) - 5, 3, LossReason.TORN, "the last line does not end")]
    assert account.torn_bytes == len(LINES[1]) - 5


def test_a_whole_last_line_without_its_newline_is_torn_too() -> None:
    _, losses, _ = read(HEAD + LINES[0][:-1])
    assert [loss.reason for loss in losses] == [LossReason.TORN]


def test_records_after_a_torn_one_are_yielded() -> None:
    records, losses, _ = read(HEAD + LINES[0] + LINES[1][:9] + b"\n" + LINES[2])
    assert records == [HEADER, NAMES[0], NAMES[2]]
    assert [(loss.offset, loss.length, loss.line) for loss in losses] == [(len(HEAD + LINES[0]), 10, 3)]


def test_leading_nuls_of_a_rotation_are_foreign_and_their_line_is_read() -> None:
    data = HEAD + b"\0" * 5000 + LINES[0] + LINES[1]
    records, losses, account = read(data)
    assert records == [HEADER, *NAMES[:2]]
    assert losses == [Loss(len(HEAD), 5000, 2, LossReason.FOREIGN, "5000 NUL bytes")]
    assert account.foreign_bytes == 5000


def test_a_byte_order_mark_and_crlf_are_noted_and_lose_nothing() -> None:
    data = codec.BOM + HEAD + LINES[0].replace(b"\n", b"\r\n") + LINES[1]
    records, losses, account = read(data)
    assert (records, losses) == ([HEADER, *NAMES[:2]], [])
    assert (account.had_bom, account.crlf_lines, account.foreign_bytes) == (True, 1, 3)


def test_blank_lines_are_counted_and_lose_nothing() -> None:
    records, losses, account = read(HEAD + b"\n" + LINES[0] + b" \r\n")
    assert (records, losses) == ([HEADER, NAMES[0]], [])
    assert (account.blank_lines, account.foreign_bytes) == (2, 4)


def test_unusual_separators_do_not_end_a_record() -> None:
    name = Name(9, "a\u2028\u2029\u0085b")
    records, losses, _ = read(HEAD + codec.encode_mark(name))
    assert (records, losses) == ([HEADER, name], [])


def test_an_integer_beyond_64_bits_is_lost_and_the_next_to_it_are_not() -> None:
    big = line_of(CALL).replace(b'["c",1,', b'["c",18446744073709551617,')
    records, losses, _ = read(HEAD + line_of(CALL) + big + line_of(CALL))
    assert records == [HEADER, CALL, CALL]
    assert [(loss.line, "integer_too_large" in loss.detail) for loss in losses] == [(3, True)]


def test_a_key_twice_is_lost_in_a_gap_of_a_row_too() -> None:
    gap = line_of(CALL).replace(b'"0000000000000000"', b'{"gap":"in_flight","gap":"no_data"}')
    _, losses, _ = read(HEAD + gap + LINES[0])
    assert ["duplicate_key" in loss.detail for loss in losses] == [True]


def test_a_header_in_the_middle_is_a_loss() -> None:
    records, losses, _ = read(HEAD + LINES[0] + HEAD + LINES[1])
    assert records == [HEADER, *NAMES[:2]]
    assert [loss.line for loss in losses] == [3]


def test_records_after_the_end_mark_are_counted() -> None:
    end = codec.encode_mark(EndMark(lines=1, calls=0, details=0, states=0, gaps={}))
    _, _, account = read(HEAD + end + LINES[0] + LINES[1])
    assert account.records_after_end == 2


def test_a_damaged_header_does_not_close_the_journal() -> None:
    records, losses, account = read(HEAD[:20] + b"\n" + LINES[0])
    assert (records, account.header) == ([NAMES[0]], None)
    assert [loss.line for loss in losses] == [1]


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (b'{"format":"other-tool","version":"1.0"}\n', "foreign_journal"),
        (HEAD.replace(b'"version":"1.3"', b'"version":"2.0"'), "newer_version"),
        (HEAD.replace(b'"version":"1.3"', b'"version":"one"'), "foreign_journal"),
    ],
)
def test_a_foreign_journal_is_refused_by_name(first: bytes, code: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        read(first + LINES[0])
    assert caught.value.code == code
    assert "calls.jsonl" in caught.value.message


def test_a_later_minor_version_is_read_on_with_its_surplus_counted() -> None:
    head = HEAD.replace(b'"version":"1.3"', b'"version":"1.7","mood":"calm"')
    extra = LINES[0].replace(b'"text"', b'"hint":{"x":[1]},"text"')
    records, losses, account = read(head + extra + b'{"type":"mood"}\n' + LINES[1])
    assert [record for record in records if isinstance(record, Name)] == NAMES[:2]
    assert losses == []
    assert (account.unknown_fields, account.unknown_records) == (2, 1)
    assert adds_up(account, head + extra + b'{"type":"mood"}\n' + LINES[1])


def test_damage_in_a_later_minor_version_is_a_loss_as_ever() -> None:
    head = HEAD.replace(b'"version":"1.3"', b'"version":"1.7"')
    _, losses, _ = read(head + b'{"type":"name","id":"x","text":"y"}\n{torn\n' + LINES[0])
    assert [loss.reason for loss in losses] == [LossReason.INVALID, LossReason.MALFORMED]


def test_a_line_full_of_starts_is_looked_at_a_bounded_number_of_times() -> None:
    (_, loss) = JournalReader([HEAD + b'{"' * 5000 + b"\n"], name="j")
    assert isinstance(loss, Loss)
    assert loss.reason is LossReason.MALFORMED


def test_an_unknown_field_in_our_own_version_is_a_loss() -> None:
    _, losses, _ = read(HEAD + LINES[0].replace(b'"text"', b'"hint":1,"text"'))
    assert [loss.reason for loss in losses] == [LossReason.INVALID]


def test_a_line_that_never_ends_is_skipped_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_LINE_BYTES", 1 << 20)
    total = 24 << 20

    def endless() -> Iterator[bytes]:
        yield HEAD
        for _ in range(total >> 16):
            yield b"x" * (1 << 16)
        yield b"\n" + LINES[0]

    tracemalloc.start()
    try:
        reader = JournalReader(endless(), name="calls.jsonl")
        items = list(reader)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert [type(item).__name__ for item in items] == ["JournalHeader", "Loss", "Name"]
    loss = items[1]
    assert isinstance(loss, Loss)
    assert (loss.offset, loss.length, loss.line, loss.reason) == (len(HEAD), total + 1, 2, LossReason.TOO_LONG)
    account = reader.account
    assert account.size == total + len(HEAD) + 1 + len(LINES[0])
    assert account.record_bytes + account.torn_bytes + account.foreign_bytes == account.size


def test_what_ends_a_line_that_is_too_long_is_not_read_as_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_LINE_BYTES", 100)
    items = list(JournalReader([HEAD, b"x" * 150, LINES[0], LINES[1]], name="j"))
    assert [type(item).__name__ for item in items] == ["JournalHeader", "Loss", "Name"]
    assert items[2] == NAMES[1]
    (_, unended) = JournalReader([HEAD, b"x" * 150, b"y" * 10], name="j")
    assert isinstance(unended, Loss)
    assert (unended.length, unended.reason) == (160, LossReason.TOO_LONG)


def test_nuls_without_end_are_foreign_and_the_record_behind_them_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_LINE_BYTES", 100)
    reader = JournalReader([HEAD, b"\0" * 150, b"\0" * 20 + LINES[0]], name="j")
    items = list(reader)
    assert [item for item in items if not isinstance(item, Loss)] == [HEADER, NAMES[0]]
    lost = [(item.length, item.reason, item.line) for item in items if isinstance(item, Loss)]
    assert lost == [(150, LossReason.FOREIGN, 2), (20, LossReason.FOREIGN, 2)]
    assert reader.account.foreign_bytes == 170


def test_memory_stays_bounded_on_a_long_journal() -> None:
    row = line_of(CALL)
    block = row * 2000

    def many() -> Iterator[bytes]:
        yield HEAD
        for _ in range(60):
            yield block

    tracemalloc.start()
    try:
        count = sum(1 for _ in JournalReader(many(), name="calls.jsonl"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 120_001
    assert peak < 20 * len(block)


def test_what_is_known_to_be_missing_is_a_loss_of_no_bytes() -> None:
    reader = JournalReader([HEAD], name="x", missing="the file ends 10 bytes early")
    items = list(reader)
    assert items == [HEADER, Loss(len(HEAD), 0, 2, LossReason.MISSING, "the file ends 10 bytes early")]
    assert reader.account.losses == 1


def test_the_format_is_the_one_of_the_records() -> None:
    assert (HEADER.format, HEADER.version) == (calls.FORMAT, calls.VERSION)
