"""JSON of other programs: what is refused of it, with its line, and what is still read (AT-16)."""

import pytest

from paritrace.evidence.plain_json import parse, parse_lines


@pytest.mark.parametrize(
    ("data", "value", "said"),
    [
        (
            b'{"a": 1,\n"a": 2, "b": 3}',
            {"b": 3},
            ['f, line 2: key "a" occurs twice in one object: neither value is read'],
        ),
        (b'{"a": [NaN,\n-Infinity]}', {"a": [None, None]}, ["f, line 1: NaN", "f, line 2: -Infinity"]),
        (b'{"a": 1e999}', {"a": None}, ["f, line 1: a number that overflows"]),
        (b'{"a": [1,\n2', None, ["f, line 2: the file ends in the middle of a value (torn)"]),
        (b'{"a": "tor', None, ["f, line 1: the file ends in the middle of a value (torn)"]),
        (b"", None, ["f, line 1: the file ends in the middle of a value (torn)"]),
        (b"[1] 2", None, ["f, line 1: not JSON: Extra data"]),
        (b'\n{"a": "\xff"}', None, ["f, line 2: byte 8 is not UTF-8"]),
        (b'"\\ud800"', None, ["f, line 1: half of a surrogate pair"]),
        (b"[" * 200_000, None, ["f, line 1: not readable as JSON: RecursionError"]),
        (b"9" * 10_000, None, ["f, line 1: not readable as JSON: ValueError"]),
        (b'\xef\xbb\xbf{"a": "\\ud83d\\ude00"}', {"a": "😀"}, []),
    ],
)
def test_at_16_strictness_is_kept_and_told_by_line(data: bytes, value: object, said: list[str]) -> None:
    parsed = parse(data, path="f")
    assert parsed.value == value
    told = [str(refusal) for refusal in parsed.refusals]
    assert len(told) == len(said)
    assert all(line.startswith(start) for line, start in zip(told, said, strict=True))


def test_at_16_a_refused_line_does_not_hide_the_others() -> None:
    values, refusals = parse_lines(b'{"a": 1}\n{"a": NaN}\nnot json\n\n{"a": 2}\n{"a"', path="f")
    assert values == [(1, {"a": 1}), (2, {"a": None}), (5, {"a": 2})]
    assert [refusal.line for refusal in refusals] == [2, 3, 6]
