"""The text of traces: whole, cut, odd and hostile (IN-10; B-01, B-03, B-04, B-06, B-08)."""

import gzip
import json
from collections.abc import Iterator
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.inference.importers import kineto_text
from paritrace.inference.importers.kineto_events import TraceEvent
from paritrace.inference.importers.kineto_stops import StopReason
from paritrace.inference.importers.kineto_text import TraceText

SMALL = json.dumps(
    {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": 'a "}, {" b'}],
        "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "k}, {", "ts": 1.5, "dur": 2, "args": {"correlation": 7}},
            {"ph": "X", "name": "back\\\\", "args": {"list": [{"a": 1}, {"b": [2, {"c": 3}]}]}},
            {},
            {"ph": "i", "name": "snow ☃ \U0001f600", "pid": "Spans", "tid": 0},
        ],
        "INFO": ["INFO: x"],
        "baseTimeNanoseconds": 5,
    },
    indent=1,
).encode()


def read(*chunks: bytes) -> tuple[list[TraceEvent], TraceText]:
    text = TraceText(chunks)
    return [event for batch in text.batches() for event in batch], text


def stopped(*chunks: bytes) -> StopReason | None:
    stop = read(*chunks)[1].stop
    return None if stop is None else stop.reason


def test_a_whole_trace_is_read_to_its_end() -> None:
    events, text = read(SMALL)
    assert text.stop is None
    assert [event.name for event in events] == ["k}, {", "back\\\\", "", "snow ☃ \U0001f600"]
    assert events[0].ts == Decimal("1.5")
    assert text.members["baseTimeNanoseconds"] == 5
    assert text.num_bytes == len(SMALL)


def test_every_cut_gives_the_events_before_it_and_says_that_it_is_one() -> None:
    whole = read(SMALL)[0]
    for end in range(len(SMALL)):
        events, text = read(SMALL[:end])
        assert events == whole[: len(events)]
        assert text.stop is not None, end
        assert text.stop.reason is StopReason.FILE_ENDS
        assert text.stop.byte == end
        assert text.stop.events == len(events)


def test_compressed_data_cut_anywhere_give_the_events_before_it() -> None:
    packed = gzip.compress(SMALL, mtime=0)
    whole = read(packed)[0]
    assert whole == read(SMALL)[0]
    for end in range(2, len(packed)):
        events, text = read(packed[:end])
        assert events == whole[: len(events)]
        assert text.stop is not None, end
        assert text.stop.reason is StopReason.GZIP_ENDS


def test_damaged_compressed_data_are_told() -> None:
    packed = bytearray(gzip.compress(SMALL * 50, mtime=0))
    packed[len(packed) // 2] ^= 0xFF
    assert stopped(bytes(packed)) in {StopReason.GZIP_DAMAGED, StopReason.INVALID_JSON, StopReason.CONTROL_CHARACTER}
    packed = bytearray(gzip.compress(SMALL, mtime=0))
    packed[-6] ^= 0xFF  # the checksum
    events, text = read(bytes(packed))
    assert len(events) == 4
    assert text.stop is not None
    assert text.stop.reason is StopReason.GZIP_DAMAGED


def test_several_members_of_gzip_are_one_text() -> None:
    packed = gzip.compress(SMALL[:100], mtime=0) + gzip.compress(SMALL[100:], mtime=0) + b"\0" * 512
    assert read(packed)[0] == read(SMALL)[0]


@given(st.lists(st.integers(1, 80), min_size=1, max_size=40))
def test_how_the_bytes_come_makes_no_difference(sizes: list[int]) -> None:
    def chunks() -> Iterator[bytes]:
        at = 0
        while at < len(SMALL):
            size = sizes[at % len(sizes)]
            yield SMALL[at : at + size]
            at += size

    events, text = read(*chunks())
    assert (events, text.stop) == (read(SMALL)[0], None)


_NAMES = st.text(alphabet='a"\\}{],[: \n☃', max_size=12)
_PLAIN: st.SearchStrategy[object] = st.integers() | _NAMES


def _nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner)


def _event(name: str, ts: int | None, extra: object) -> dict[str, object]:
    return {"name": name, "extra": extra} | ({} if ts is None else {"ts": ts})


_EVENTS = st.lists(
    st.builds(_event, _NAMES, st.none() | st.integers(-5, 5), st.recursive(_PLAIN, _nested)), max_size=60
)


@settings(deadline=None)
@given(_EVENTS, st.integers(8, 400), st.sampled_from([None, 1]))
def test_blocks_of_any_size_give_what_a_parser_gives(
    events: list[dict[str, object]], block: int, indent: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kineto_text, "BLOCK_BYTES", block)
        patch.setattr(kineto_text, "LEAST_BLOCK_BYTES", 8)
        found, text = read(json.dumps({"traceEvents": events}, indent=indent).encode())
    assert text.stop is None
    assert [(one.name, one.ts) for one in found] == [(one["name"], one.get("ts")) for one in events]


def test_a_control_character_stops_reading_at_its_byte() -> None:
    text = b'{"traceEvents":[{"ph":"X"},{"ph":"X","name":"\x01<module>","ts":1,"dur":1,"pid":1,"tid":1}]}'
    events, read_text = read(text)
    assert len(events) == 1
    assert read_text.stop is not None
    assert read_text.stop.reason is StopReason.CONTROL_CHARACTER
    assert text[read_text.stop.byte : read_text.stop.byte + 1] == b"\x01"


@pytest.mark.parametrize("word", ["nan", "NaN", "-Infinity", "inf"])
def test_a_word_that_is_no_number_is_unavailable_and_names_stay_as_they_are(word: str) -> None:
    text = f'[{{"ph":"C","name":"finance, nan","args":{{"v":{word}}}}},{{"ph":"X","name":"b","ts":{word}}}]'
    events, read_text = read(text.encode())
    assert read_text.stop is None
    assert [event.name for event in events] == ["finance, nan", "b"]
    assert events[1].ts is None
    assert read_text.oddities.no_numbers == 2


def test_ids_of_any_size_stay_exact() -> None:
    text = b'[{"ph":"X","args":{"correlation":18446744073709551617,"Comms Id":18446744073709551616}}]'
    (event,), read_text = read(text)
    assert event.args is not None
    assert event.args.correlation == 18446744073709551617
    assert read_text.stop is None


def test_a_string_that_ends_in_backslashes_is_one() -> None:
    events, text = read(b'[{"name":"a","v":"value\\\\\\\\"},{"name":"b"}]')
    assert [event.name for event in events] == ["a", "b"]
    assert text.stop is None


@pytest.mark.parametrize(
    "text", [b'[\n{"ph":"X"},\n', b'[\n{"ph":"X"}', b'{"traceEvents":[{"ph":"X"}', b'{"traceEvents":[{"ph":"X"}]']
)
def test_missing_closers_are_an_end_in_the_middle(text: bytes) -> None:
    events, read_text = read(text)
    assert len(events) == 1
    assert read_text.stop is not None
    assert read_text.stop.reason is StopReason.FILE_ENDS


def test_a_comma_behind_the_last_event_is_read_over_and_counted() -> None:
    events, text = read(b'[{"ph":"X"},\n]')
    assert (len(events), text.stop, text.oddities.trailing_commas) == (1, None, 1)


def test_what_is_no_utf8_is_shown_as_such() -> None:
    events, text = read(b'[{"name":"\xff\xfea"},{"name":"\\ud800"},{"name":"b"}]')
    assert [event.name for event in events] == ["��a", "?", "b"]
    assert (text.stop, text.oddities.bad_utf8) == (None, 2)


def test_values_that_are_no_events_and_fields_of_other_types_are_counted() -> None:
    events, text = read(b'[1,null,{"name":3,"ts":true,"pid":[1],"args":7},{"tid":1.5,"ts":2}]')
    assert len(events) == 4
    assert (events[3].tid, str(events[3].ts)) == ("1.5", "2")
    assert (text.oddities.not_objects, text.oddities.odd_fields) == (2, 4)


def test_numbers_that_nothing_holds_are_no_times_and_no_end() -> None:
    events, text = read(b'[{"ts":1e999999999999999999999,"x":' + b"1" * 5000 + b"},{}]")
    assert [event.ts for event in events] == [None, None]
    assert text.stop is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", StopReason.FILE_ENDS),
        (b" \n", StopReason.FILE_ENDS),
        (b'"abc"', StopReason.NOT_A_TRACE),
        (b"\x1f\x8bnothing", StopReason.GZIP_DAMAGED),
        (b"[{}{}]", StopReason.INVALID_JSON),
        (b"[{},,{}]", StopReason.INVALID_JSON),
        (b"[]]", StopReason.INVALID_JSON),
        (b"{1:2}", StopReason.INVALID_JSON),
        (b'{"a" 2}', StopReason.INVALID_JSON),
        (b'{"a":2 "b":3}', StopReason.INVALID_JSON),
        (b'{"a":tru}', StopReason.INVALID_JSON),
        (b'[{"name":"a"b"}]', StopReason.INVALID_JSON),
        (b'[{"a":' * 5000 + b"1" + b"}]" * 5000, StopReason.INVALID_JSON),
    ],
)
def test_what_is_no_trace_is_told(text: bytes, reason: StopReason) -> None:
    assert stopped(text) is reason


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"traceEvents":[]}', b"\xef\xbb\xbf[ ] \n", b'{"traceEvents":null}'])
def test_a_trace_may_hold_nothing(text: bytes) -> None:
    events, read_text = read(text)
    assert (events, read_text.stop) == ([], None)


def test_a_value_larger_than_is_held_stops_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto_text, "MOST_VALUE_BYTES", 1 << 14)
    monkeypatch.setattr(kineto_text, "BLOCK_BYTES", 1 << 12)
    pieces = [b"a" * 4096] * 64
    assert stopped(b'[{"name":"', *pieces, b'"}]') is StopReason.TOO_LARGE


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:1a\\ ', max_size=60).map(str.encode))
def test_no_bytes_raise(data: bytes) -> None:
    events, text = read(data)
    try:
        json.loads(data)
        valid = data[:1] in (b"[", b"{")
    except (ValueError, RecursionError):
        valid = False
    if valid:
        assert text.stop is None
    elif text.stop is None:  # what we read over: a trailing comma, words that are no numbers
        assert text.oddities != type(text.oddities)() or _lenient(data)
    assert text.num_events == len(events)


def _lenient(data: bytes) -> bool:
    """Whether the standard library refuses text for its encoding alone, or msgspec takes what it takes."""
    try:
        msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, ValueError):
        return b"nan" in data.lower() or b"inf" in data.lower() or not data.isascii()
    return True
