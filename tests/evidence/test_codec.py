"""Records become bytes and back in one place, strictly (EV-1, EV-2)."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import EvidenceError, InternalError
from paritrace.evidence import codec
from paritrace.evidence.calls import Detail, Kind, Moments, Name
from paritrace.evidence.codec import Lenient, Record, Unknown
from paritrace.evidence.faults import Fault, FaultKind, may_hold_long_integer
from paritrace.evidence.strictness import walk
from paritrace.runs.envelope import Receipt
from paritrace.testing.strategies import A_CALL, damaged, line_of, records

CALL = A_CALL


def fault(line: bytes) -> Fault:
    found = codec.decode_line(line)
    assert isinstance(found, Fault), found
    return found


@given(records)
def test_a_record_survives_its_line_and_is_canonical(record: Record) -> None:
    line = line_of(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert codec.decode_line(line[:-1]) == record
    assert codec.is_canonical(line[:-1], record)


@pytest.mark.parametrize(
    ("line", "kind", "says"),
    [
        (b'{"type":"name","id":1,"id":2,"text":"x"}', FaultKind.MALFORMED, "duplicate_key"),
        (b'{"type":"name","id":1,"text":"x","text":"x"}', FaultKind.MALFORMED, "duplicate_key"),
        (b'{"type":"name","id":NaN,"text":"x"}', FaultKind.MALFORMED, "not_finite"),
        (b'{"type":"name","id":18446744073709551617,"text":"x"}', FaultKind.MALFORMED, "integer_too_large"),
        (b'{"type":"name","id":1,"text":"\\ud800"}', FaultKind.MALFORMED, "lone_surrogate"),
        (b'{"type":"name","id":1,"text":"\xff"}', FaultKind.MALFORMED, "invalid_utf8"),
        (b'{"type":"name","id":1,"text":"\x01"}', FaultKind.MALFORMED, "control_character"),
        (b"[" * 100_000, FaultKind.MALFORMED, "too_deep"),
        (b'{"type":"name","id":1,"text":"x"', FaultKind.MALFORMED, "invalid JSON"),
        (b'{"type":"name","id":1,}', FaultKind.MALFORMED, "invalid JSON"),
        (b"", FaultKind.MALFORMED, "invalid JSON"),
        (b'{"type":"name","id":01,"text":"x"}', FaultKind.MALFORMED, "invalid JSON"),
        (b'{"type":"name","id":true,"text":"x"}', FaultKind.INVALID, "got `bool`"),
        (b'{"type":"name","id":1.0,"text":"x"}', FaultKind.INVALID, "got `float`"),
        (b'{"type":"name","id":1,"text":"x","more":1}', FaultKind.INVALID, "unknown field `more`"),
        (b'{"type":"unheard","id":1}', FaultKind.INVALID, "unheard"),
        (b'["x",1]', FaultKind.INVALID, "x"),
        (b"[1]", FaultKind.INVALID, ""),
        (b"17", FaultKind.INVALID, ""),
        (b'{"a":1}{"b":2}', FaultKind.SEVERAL_VALUES, "line holds 2 JSON values (extra data at byte 7)"),
        (b"1 2 3", FaultKind.SEVERAL_VALUES, "line holds 3 JSON values"),
    ],
)
def test_a_bad_line_is_a_fault_with_its_kind(line: bytes, kind: FaultKind, says: str) -> None:
    found = fault(line)
    assert found.kind is kind
    assert says in found.detail
    assert 0 <= found.offset <= len(line)


def test_a_moment_that_overflows_is_a_fault() -> None:
    line = line_of(CALL)[:-1].replace(b'["c",1,', b'["c",1e999,')
    assert fault(line).detail.startswith("number_overflow")


@given(damaged())
def test_what_is_taken_at_a_glance_is_strict(data: bytes) -> None:
    for line in data.split(b"\n"):
        if not isinstance(codec.decode_line(line), Fault):
            assert walk(line).violation is None


@pytest.mark.parametrize("space", [b"", b" ", b"\t", b"\r"])
def test_an_integer_beyond_64_bits_is_a_fault_in_rows_too(space: bytes) -> None:
    for number in (b"18446744073709551616", b"-9223372036854775809", b"123456789012345678901234567890"):
        line = line_of(CALL)[:-1].replace(b'["c",1,', b'["c",' + space + number + b",")
        assert fault(line).detail.startswith("integer_too_large")
    for number in (b"18446744073709551615", b"-9223372036854775808"):
        assert not isinstance(
            codec.decode_line(line_of(CALL)[:-1].replace(b'["c",1,', b'["c",' + number + b",")), Fault
        )


def test_digits_in_strings_are_no_numbers() -> None:
    assert not may_hold_long_integer(b'["d","' + b"1" * 400 + b'","ab' + b"1" * 40 + b'",0.' + b"1" * 30 + b"]")


def test_a_boolean_where_an_integer_is_due_is_a_fault_in_rows_too() -> None:
    assert fault(line_of(CALL)[:-1].replace(b'["c",1,', b'["c",true,')).kind is FaultKind.INVALID


def test_a_row_with_an_element_too_many_or_too_few_is_a_fault() -> None:
    line = line_of(CALL)[:-1]
    assert fault(line[:-1] + b",7]").kind is FaultKind.INVALID
    assert fault(b'["c",1,2]').kind is FaultKind.INVALID


def test_unusual_separators_are_ordinary_characters() -> None:
    name = Name(1, "a\u2028b\u2029c\u0085d\u000be\u000cf")
    assert codec.decode_line(codec.encode_mark(name)[:-1]) == name


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", range(5))
def test_a_writer_never_emits_a_number_that_is_not_finite(value: float, field: int) -> None:
    numbers: list[float | None] = [None] * 5
    numbers[field] = value
    detail = Detail(1, "o", 0, "", "", "", "", Moments(*numbers), None, "", False)
    with pytest.raises(InternalError) as caught:
        codec.encode_row(detail)
    assert caught.value.code == "not_finite"


@given(st.lists(records, max_size=8))
def test_a_batch_is_its_lines(batch: list[Record]) -> None:
    assert codec.encode_lines(batch) == b"".join(map(line_of, batch))


def test_a_batch_is_checked_as_its_records_are() -> None:
    bad = Detail(1, "o", 0, "", "", "", "", Moments(math.nan, None, None, None, None), None, "", degenerate=False)
    with pytest.raises(InternalError):
        codec.encode_lines([Name(1, "x"), bad])
    assert codec.encode_lines([Name(1, "caf\udce9"), Name(2, "x")]) == (
        b'{"type":"name","id":1,"text":"caf\\\\udce9"}\n{"type":"name","id":2,"text":"x"}\n'
    )


def test_an_undecodable_path_is_spelled_out() -> None:
    line = codec.encode_mark(Name(1, "caf\udce9.py"))
    assert codec.decode_line(line[:-1]) == Name(1, "caf\\udce9.py")


def test_a_line_of_a_later_minor_version_is_read_on_and_its_surplus_counted() -> None:
    line = (
        b'{"type":"kind","id":1,"dtype":"float32","shape":[2],"strides":[1],"layout":"strided","device":"cpu",'
        b'"requires_grad":false,"num_elements":2,"logical_nbytes":8,"mood":"calm","nested":{"a":1}}'
    )
    found = codec.decode_lenient(line)
    assert isinstance(found, Lenient)
    assert isinstance(found.record, Kind)
    assert (found.record.shape, found.unknown_fields) == ((2,), 2)


def test_a_longer_row_of_a_later_minor_version_is_read_on() -> None:
    plain = msgspec.json.decode(line_of(CALL))
    plain[16][0].append("new in the slot")
    plain[17][0][2]["hint"] = "new in the gap"
    found = codec.decode_lenient(msgspec.json.encode([*plain, "new", "new"]))
    assert found == Lenient(CALL, 4)


def test_a_kind_of_record_that_a_later_version_made_is_unknown_not_lost() -> None:
    assert codec.decode_lenient(b'{"type":"mood","of":"calm"}') == Lenient(Unknown("mood"), 0)
    assert codec.decode_lenient(b'["z",1,2]') == Lenient(Unknown("z"), 0)


@pytest.mark.parametrize(
    "line", [b'{"type":"name","id":"x","text":"y"}', b'["c",1]', b"[]", b"{}", b"null", b'{"type":7}']
)
def test_leniency_is_about_surplus_only(line: bytes) -> None:
    assert isinstance(codec.decode_lenient(line), Fault)


@pytest.mark.parametrize("line", [b'{"type":"name","id":1,"id":1,"text":"y"}', b"[NaN]", b"{"])
def test_leniency_is_as_strict_about_json(line: bytes) -> None:
    assert codec.decode_lenient(line) == codec.decode_line(line)


def test_a_document_is_sorted_indented_and_ends_in_a_newline() -> None:
    data = codec.encode_document(Receipt(lines=1, calls=2, details=3, states=4, gaps={"b": 1, "a": 2}))
    assert (
        data
        == b"""{
  "calls": 2,
  "details": 3,
  "gaps": {
    "a": 2,
    "b": 1
  },
  "lines": 1,
  "states": 4
}
"""
    )
    assert codec.decode_document(data, Receipt, name="receipt").gaps == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{\n  "lines": 1,\n  "lines": 2\n}', "line 3, byte 18: duplicate_key"),
        (b'{"lines":1,"calls":0,"details":0,"states":0,"gaps":{"a":NaN}}', "line 1, byte 56: not_finite"),
        (b'{"lines":1,"calls":0,"details":0,"states":0,"mood":1}', "unknown field `mood`"),
        (b'{"lines":true,"calls":0,"details":0,"states":0}', "got `bool`"),
        (b"", "line 1, byte 0: invalid JSON"),
        (b'{"lines":1,\n"calls"', "line 2"),
        (b"\x00\x01\x02", "byte 0: invalid JSON"),
    ],
)
def test_a_bad_document_is_refused_with_line_and_byte(data: bytes, says: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        codec.decode_document(data, Receipt, name="receipt")
    assert caught.value.code == "invalid_document"
    assert says in caught.value.message


def test_a_byte_order_mark_and_crlf_are_tolerated_in_documents() -> None:
    data = codec.BOM + b'{"lines":1,\r\n"calls":0,"details":0,"states":0}\r\n'
    assert codec.decode_document(data, Receipt, name="receipt").lines == 1
