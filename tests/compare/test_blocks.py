"""Calls that are decoded to columns a block at a time are those that are read one by one, whatever the bytes (EV-8)."""

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.compare.call_columns import CallColumns
from paritrace.compare.load import Recorded, read
from paritrace.compare.sample_store import SampleStore
from paritrace.compare.settings import Settings
from paritrace.compare.shifted_steps import ShiftedJournal
from paritrace.errors import EvidenceError
from paritrace.evidence import codec
from paritrace.evidence.calls import Call, Counts, Detail, Moments, Slot, StateSamples
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.journal import Account, Block, JournalReader
from paritrace.evidence.kernels import available
from paritrace.evidence.line_blocks import PAYS_OFF_FROM, Tables, Window, whole
from paritrace.runs.views import SessionView
from paritrace.testing.strategies import A_CALL, HEADER, damaged, journals

HEAD = codec.encode_mark(HEADER)
PLAIN = replace(A_CALL, outputs=(Slot(5, 6, "0f" * 8, -1),))
LINE = codec.encode_row(PLAIN)
GAPPED = codec.encode_row(replace(PLAIN, outputs=(Slot(5, 6, Gap(CaptureGap.UNINITIALISED), -1),)))
Read = tuple[list[str], list[str], Account]


def pieces(data: bytes, chunk_bytes: int) -> Iterator[bytes]:
    return (data[start : start + chunk_bytes] for start in range(0, len(data), chunk_bytes))


def in_blocks(data: bytes, chunk_bytes: int, *, num_bytes: int = 0) -> Read:
    """Calls, everything else in its order, and the account, as blocks give them."""
    reader = JournalReader(pieces(data, chunk_bytes), name="j", num_bytes=num_bytes)
    columns, others = CallColumns(), list[object]()
    for block in reader.blocks():
        if isinstance(block, Block):
            columns.extend(block.calls)
            others += [codec.decode_row(line) for line in (*block.details.lines, *block.samples)]
        others += [record for _, record in block.others] if isinstance(block, Block) else block
    columns.settle()
    calls = [*columns, *(record for record in others if isinstance(record, Call))]
    return told(calls), [repr(record) for record in others if not isinstance(record, Call)], reader.account


def one_by_one(data: bytes, chunk_bytes: int) -> Read:
    reader = JournalReader(pieces(data, chunk_bytes), name="j")
    items = list(reader)
    calls = [record for record in items if isinstance(record, Call)]
    return told(calls), [repr(item) for item in items if not isinstance(item, Call)], reader.account


def told(calls: list[Call]) -> list[str]:
    return sorted(map(repr, calls))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)
@given(st.one_of(journals, damaged()), st.integers(1, 2000))
def test_blocks_hold_what_is_read_one_by_one(data: bytes, chunk_bytes: int) -> None:
    assert outcome(in_blocks, data, chunk_bytes) == outcome(one_by_one, data, chunk_bytes)


def outcome(read: Callable[[bytes, int], Read], data: bytes, chunk_bytes: int) -> Read | str:
    """What is read, or why it is refused."""
    try:
        return read(data, chunk_bytes)
    except EvidenceError as refused:
        return refused.code or ""


UNPLAIN = [
    LINE * 3,
    LINE[:-1] + b"," + LINE,  # two calls on one line
    LINE[:-2] + b"\n" + LINE[:-1] + b"]\n",  # a bracket on the wrong line
    LINE + LINE[:40] + b"\n" + LINE,
    LINE.replace(b"0f0f", b"0F0F") + LINE,
    LINE.replace(b'"0f0f', b'"f0f') + LINE,
    LINE.replace(b'["c",1,', b'["c",9223372036854775808,') + LINE,
    LINE.replace(b'["c",1,', b'["c",18446744073709551616,') + LINE,
    LINE.replace(b'["c",1,', b'["c",01,') + LINE,
    LINE.replace(b'["c",1,', b'["c",1.5,') + LINE,
    LINE.replace(b'["c",1,', b'["c", 1 ,') + LINE,
    LINE.replace(b",0]]]", b"]]]") + LINE,  # a slot without its last field
    LINE.replace(b",0]]]", b",2]]]") + LINE,
    codec.encode_row(A_CALL) + LINE,  # a gap
    GAPPED + LINE + GAPPED,
    GAPPED + GAPPED.replace(b"uninitialised", b"no_data") + LINE,
    GAPPED.replace(b"uninitialised", b"no_such_reason") + LINE,
    GAPPED.replace(b"uninitialised", b"") + LINE,
    GAPPED.replace(b"uninitialised", b"No_data") + LINE,
    GAPPED.replace(b'd"}', b'd","detail":"as told"}') + LINE,
    GAPPED.replace(b'd"}', b'd" }') + LINE,
    GAPPED.replace(b'd"}', b'd"}}') + LINE,
    GAPPED.replace(b'd"}', b"d}") + LINE,
    GAPPED.replace(b'{"gap"', b'{"gap":"no_data","gap"') + LINE,
    GAPPED[:-30] + b"\n" + LINE,
    b"\n" + LINE,
    b'["c"]\n' + LINE,
    b'["c",\n' + LINE,
]


@pytest.mark.parametrize("lines", UNPLAIN)
def test_lines_that_are_not_plainly_right_read_as_before(lines: bytes) -> None:
    data = HEAD + lines
    beyond = b"9223372036854775808" in lines
    if beyond:  # a record of the journal, for which the columns have no room
        assert one_by_one(data, 1 << 16)[2].calls == 2
        with pytest.raises(OverflowError):
            CallColumns().take([call for call in JournalReader([data], name="j") if isinstance(call, Call)])
        return
    assert in_blocks(data, 1 << 16) == one_by_one(data, 1 << 16)


needs_numba = pytest.mark.skipif(not available(), reason="numba, the extra `fast`, is not installed")
A_DETAIL = Detail(
    call=1,
    side="o",
    slot=0,
    bits="ab" * 8,
    xor="ab" * 4,
    regions="ab" * 8,
    elements="",
    moments=Moments(1.5, -2.25e-7, 0.0, None, 3.0),
    counts=Counts(0, 0, 0, 0, 0, 0, 0),
    samples="ab" * 8,
    degenerate=False,
)
DETAIL = codec.encode_row(A_DETAIL)
A_SAMPLE = StateSamples(3, 0, "begin", 1, ("ab" * 4, "", "00"))
SAMPLES = codec.encode_row(A_SAMPLE)
ALL_SAMPLES = (
    SAMPLES,
    SAMPLES.replace(b'["t",3,', b'["t",-3,'),
    SAMPLES.replace(b'["t",3,', b'["t",03,'),
    SAMPLES.replace(b'["t",3,', b'["t",9223372036854775807,'),
    SAMPLES.replace(b"begin", b"Begin"),
    SAMPLES.replace(b"begin", b"be\\u0067in"),
    SAMPLES.replace(b"abab", b"ABAB"),
    SAMPLES.replace(b'"00"]', b'"00",]'),
    SAMPLES.replace(b'"00"]', b"0]"),
    SAMPLES.replace(b'"00"]]', b'"00"],1]'),
    SAMPLES.replace(b'["abababab","","00"]', b"[]"),
    SAMPLES[:-2] + b"\n",
)
DETAILS = (
    DETAIL,
    DETAIL.replace(b"null,null]", b'null,"tag"]'),
    DETAIL.replace(b'"o",', b'"x",'),
    DETAIL.replace(b'["d",1,', b'["d",-9223372036854775808,'),
    DETAIL.replace(b"1.5", b"1e400"),
    DETAIL.replace(b"1.5", b"15E-1"),
    DETAIL.replace(b"1.5", b"01.5"),
    DETAIL.replace(b"1.5", b"1."),
    DETAIL.replace(b"1.5", b"123456789012345678901"),
    DETAIL.replace(b"[1.5", b"[null,1.5"),
    DETAIL.replace(b"false", b"falsy"),
    DETAIL.replace(b"[0,0,0,0,0,0,0]", b"null"),
    DETAIL.replace(b"[0,0,0,0,0,0,0]", b"[0,0,0,0,0,0,-0]"),
    DETAIL.replace(b"ab", b"AB"),
    DETAIL[:-2] + b"\n",
)


@needs_numba
def test_a_compiled_pass_takes_apart_what_the_others_read() -> None:
    rows = (*DETAILS, *ALL_SAMPLES)
    for lines in (*UNPLAIN, *rows, *(one + other for one in rows for other in rows), LINE + DETAIL + SAMPLES + LINE):
        if b"9223372036854775808" not in lines or lines.startswith(b'["d"'):
            data = HEAD + lines
            assert compiled(data, 1 << 16) == in_order(one_by_one(data, 1 << 16)), lines
    found = Tables().apart(whole(LINE * 2 + DETAIL + SAMPLES))
    assert found is not None  # it was not idle
    assert (len(found.calls), len(found.details), len(found.samples), found.others) == (2, 1, 1, [])


@needs_numba
def test_gaps_in_place_of_bits_are_columns_too() -> None:
    other = GAPPED.replace(b"uninitialised", b"in_flight")
    found = Tables().apart(whole(LINE + GAPPED + other + GAPPED))
    assert found is not None
    assert (len(found.calls), found.others) == (4, [])
    assert found.calls.odd_values == [Gap(CaptureGap.UNINITIALISED), Gap(CaptureGap.IN_FLIGHT)]
    columns = CallColumns()
    columns.extend(found.calls.where(np.array([True, False, True, True])))
    columns.extend(found.calls)
    columns.settle()
    records = [codec.decode_row(line) for line in (LINE, other, GAPPED, LINE, GAPPED, other, GAPPED)]
    assert list(columns) == records


@needs_numba
def test_lines_are_read_where_they_stand() -> None:
    tables, lines = Tables(), LINE + DETAIL + SAMPLES + b"{}\n" + GAPPED
    for behind in (b"", b"[" * 3, LINE * 2):  # nothing, less than the pass looks ahead, and more
        data = LINE[:-20] + b"\n" + lines + behind
        start = len(LINE) - 19
        found, alone = tables.apart(Window(data, start, start + len(lines))), tables.apart(whole(lines))
        assert found is not None
        assert alone is not None
        assert (found.samples, found.others, found.details.lines) == (alone.samples, alone.others, alone.details.lines)
        assert found.others == [(1, b"{}")]
        assert found.calls.odd_values == alone.calls.odd_values == [Gap(CaptureGap.UNINITIALISED)]
        for name, column in found.calls.columns.items():
            assert column.tolist() == alone.calls.columns[name].tolist()


@pytest.mark.parametrize("num_bytes", [0, PAYS_OFF_FROM])
def test_cp10a_samples_of_states_are_kept_where_they_are_asked_for(num_bytes: int) -> None:
    nobody = cast("SessionView", None)  # no record of these asks whose it is
    for store, wanted in ((SampleStore(), [A_SAMPLE, A_SAMPLE]), (None, None)):
        found = Recorded(session=nobody, state_samples=store)
        read(found, JournalReader([HEAD + SAMPLES * 2], name="j", num_bytes=num_bytes), settings=Settings())
        assert (None if found.state_samples is None else list(found.state_samples)) == wanted


@needs_numba
def test_steps_of_samples_that_are_lines_still_are_shifted() -> None:
    journal = JournalReader([HEAD + LINE + SAMPLES], name="j", num_bytes=PAYS_OFF_FROM)
    blocks = [block for block in ShiftedJournal(journal, by=5).blocks() if isinstance(block, Block)]
    assert [record for block in blocks for _, record in block.others] == [replace(A_SAMPLE, step=8)]
    assert [len(block.samples) for block in blocks] == [0]


@needs_numba
def test_tables_are_used_again_and_blocks_of_very_short_lines_are_left_to_others() -> None:
    tables = Tables()
    first = tables.apart(whole(LINE * 2))
    assert tables.apart(whole(LINE.replace(b'["c",1,', b'["c",7,') * 2)) is not None
    assert first is not None
    assert first.calls.columns["id"].tolist() == [1, 1]  # what was found before does not change
    assert tables.apart(whole(b"{}\n" * 1000)) is None


@needs_numba
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)
@given(st.one_of(journals, damaged()), st.integers(1, 2000))
def test_a_compiled_pass_reads_whatever_the_others_read(data: bytes, chunk_bytes: int) -> None:
    wanted = outcome(one_by_one, data, chunk_bytes)
    assert outcome(compiled, data, chunk_bytes) == (wanted if isinstance(wanted, str) else in_order(wanted))


def compiled(data: bytes, chunk_bytes: int) -> Read:
    return in_order(in_blocks(data, chunk_bytes, num_bytes=PAYS_OFF_FROM))


def in_order(read: Read) -> Read:
    """Summaries and samples stand apart from the other records of a block; among themselves they keep their order."""
    calls, others, account = read
    return (
        calls,
        sorted(others, key=lambda told: (told.startswith("StateSamples("), told.startswith("Detail("))),
        account,
    )
