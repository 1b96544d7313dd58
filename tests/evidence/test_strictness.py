"""Strict JSON, one corner case each, with the byte at which it stands (EV-2)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.evidence.strictness import MAX_DEPTH, Breach, walk

DEEP_ENOUGH = "[" * MAX_DEPTH + "]" * MAX_DEPTH


@pytest.mark.parametrize(
    ("text", "breach", "at"),
    [
        ('{"a": 1, "b": 2, "a": 3}', Breach.DUPLICATE_KEY, '"a": 3'),
        ('{"a": 1, "\\u0061": 3}', Breach.DUPLICATE_KEY, '"\\u0061"'),
        ('{"😀": 1, "\\ud83d\\ude00": 3}', Breach.DUPLICATE_KEY, '"\\ud83d'),
        ('{"x": [{"k": 1, "k": 1}]}', Breach.DUPLICATE_KEY, '"k": 1}'),
        ('{"a": {"b": 1}, "c": {"b": 1}, "a": 0}', Breach.DUPLICATE_KEY, '"a": 0'),
        ("[1, NaN]", Breach.NOT_FINITE, "NaN"),
        ("[Infinity]", Breach.NOT_FINITE, "Infinity"),
        ("[1, -Infinity]", Breach.NOT_FINITE, "-Infinity"),
        ("[nan]", Breach.NOT_FINITE, "nan"),
        ("[1e999]", Breach.NUMBER_OVERFLOW, "1e999"),
        ("[-1.5e400]", Breach.NUMBER_OVERFLOW, "-1.5e400"),
        ("[18446744073709551616]", Breach.INTEGER_TOO_LARGE, "1844"),
        ("[-9223372036854775809]", Breach.INTEGER_TOO_LARGE, "-922"),
        ("[1" + "0" * 5000 + "]", Breach.INTEGER_TOO_LARGE, "1000"),
        ('["\\ud800"]', Breach.LONE_SURROGATE, "\\ud800"),
        ('["\\udc00"]', Breach.LONE_SURROGATE, "\\udc00"),
        ('["\\ud800\\u0041"]', Breach.LONE_SURROGATE, "\\ud800"),
        ('["\\ud800x\\udc00"]', Breach.LONE_SURROGATE, "\\ud800"),
        ('["\\ud83d\\ude00\\ude00"]', Breach.LONE_SURROGATE, "\\ude00\\ude00"),
        ('["a\x01b"]', Breach.CONTROL_CHARACTER, "\x01"),
        ('["a\tb"]', Breach.CONTROL_CHARACTER, "\t"),
        ('["never ends \x02', Breach.CONTROL_CHARACTER, "\x02"),
        ("[" + DEEP_ENOUGH + "]", Breach.TOO_DEEP, None),
        ('{"a": 1}{"b": 2}', Breach.SEVERAL_VALUES, '{"b"'),
        ("1 2", Breach.SEVERAL_VALUES, "2"),
    ],
)
def test_what_strict_json_forbids_is_found_where_it_stands(text: str, breach: Breach, at: str | None) -> None:
    violation = walk(text.encode()).violation
    assert violation is not None
    assert violation.breach is breach
    place = MAX_DEPTH if at is None else text.index(at)
    if breach is Breach.LONE_SURROGATE and at == "\\ude00\\ude00":
        place += len("\\ude00")
    assert violation.offset == len(text[:place].encode())


@pytest.mark.parametrize("bad", [b'["\xff"]', b'["\xed\xa0\x80"]', b'["ok \xc3"]'])
def test_bytes_that_are_not_utf8(bad: bytes) -> None:
    violation = walk(bad).violation
    assert violation is not None
    assert violation.breach is Breach.INVALID_UTF8
    assert bad[violation.offset] >= 0x80


@pytest.mark.parametrize(
    "text",
    [
        DEEP_ENOUGH,
        "[18446744073709551615, -9223372036854775808, 1e308, -0, 0.1]",
        '{"a": {"a": {"a": [{"a": 1}, {"a": 2}]}}}',
        '{"a": "a", "b": ["a", "a"]}',
        '["\\ud83d\\ude00", "\\\\ud800", "\\"", "value\\\\\\\\"]',
        '["\u2028\u2029\u0085\u000b\u000c"]'.replace("\u000b", "\\u000b").replace("\u000c", "\\f"),
        ' \t\r\n{"a" : null , "b":true,"c":false} \n',
        '"NaN"',
        "",
    ],
)
def test_what_is_allowed_passes(text: str) -> None:
    assert walk(text.encode()).violation is None


texts = st.text(st.characters(codec="utf-8"))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values, st.booleans())
def test_every_document_of_a_strict_writer_passes(value: object, ascii_only: bool) -> None:
    assert walk(json.dumps(value, ensure_ascii=ascii_only).encode()).violation is None


@given(st.binary(max_size=60))
def test_any_bytes_can_be_walked(data: bytes) -> None:
    found = walk(data).violation
    assert found is None or 0 <= found.offset <= len(data)
