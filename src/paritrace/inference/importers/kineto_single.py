"""One value of a trace by itself: what can be taken of an odd one, else what is wrong with it (IN-10, B-03)."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import cast

import msgspec
from msgspec import Struct, field

from paritrace.inference.importers.kineto_events import EventArgs, Id, TraceEvent
from paritrace.inference.importers.kineto_repeats import READ, Pairs, may_repeat, once
from paritrace.inference.importers.kineto_scan import without_no_numbers
from paritrace.inference.importers.kineto_stops import Stopped, StopReason

NESTED = "nested deeper than is read"
UNREADABLE = (msgspec.DecodeError, RecursionError, ValueError, ArithmeticError)
_CUT = re.compile(rb"[-+.\w\\\s]*")  # a number, a word or an escape that is not whole
_OPEN = ("Unterminated string starting at", NESTED)
_MOST_DIGITS = 1000  # of an integer; what is longer stays text: no time and no id is
_decode_event = msgspec.json.Decoder(TraceEvent).decode


class Oddities(Struct):
    """What was met in the text that is no event as it should be, counted."""

    trailing_commas: int = 0
    not_objects: int = 0  # values among the events that are no objects
    no_numbers: int = 0  # bare NaN or infinity: the value is unavailable
    bad_utf8: int = 0  # events with bytes that are no UTF-8, or with half a surrogate pair: shown as U+FFFD
    odd_fields: int = 0  # fields of another type than a trace's: unavailable
    repeated_keys: int = 0  # keys that stand twice in one object: neither value is read
    repeated_members: set[str] = field(default_factory=set[str])  # names that stand twice beside the events


def event_of(text: bytes, /, *, at: int, oddities: Oddities) -> TraceEvent:
    """Return the event in `text`, with what can be taken of it.

    Raises:
        Stopped: `control_character`, `invalid_json`; `at` is where the text begins.
    """
    try:
        event = _decode_event(text)
    except UNREADABLE:
        pass
    else:
        if not may_repeat(text, (event,)):
            return event
    value = _plainly(text, at=at, oddities=oddities, read=READ)
    if not isinstance(value, dict):
        oddities.not_objects += 1
        return TraceEvent()
    fields = cast("dict[str, object]", value)
    args = _object(fields, "args", oddities)
    return TraceEvent(
        ph=_text(fields, "ph", oddities) or "",
        cat=_text(fields, "cat", oddities),
        name=_text(fields, "name", oddities) or "",
        pid=_id(fields, "pid", oddities),
        tid=_id(fields, "tid", oddities),
        ts=_number(fields, "ts", oddities),
        dur=_number(fields, "dur", oddities),
        args=None
        if args is None
        else EventArgs(
            correlation=_id(args, "correlation", oddities),
            device=_id(args, "device", oddities),
            stream=_id(args, "stream", oddities),
            graph_id=_id(args, "graph id", oddities),
        ),
    )


def name_of(text: bytes, /, *, at: int) -> str:
    """Return the name of a member.

    Raises:
        Stopped: it is no string.
    """
    value = _plainly(text, at=at, oddities=Oddities())
    if not isinstance(value, str):
        raise Stopped(StopReason.INVALID_JSON, at, "no name of a member")
    return value


def checked(text: bytes, /, *, at: int, oddities: Oddities) -> object:
    """Return the value of a member beside the events: numbers with a point are Decimal, NaN is None.

    Of oddities only keys that stand twice are counted.

    Raises:
        Stopped: it is no JSON.
    """
    met = Oddities()
    value = _plainly(text, at=at, oddities=met)
    oddities.repeated_keys += met.repeated_keys
    return value


def fault_in(text: bytes, /, *, at: int) -> Stopped | None:
    """Return what is wrong inside a value that has no end, as quotes that nobody escaped; None where it is but cut."""
    try:
        _plainly(text, at=at, oddities=Oddities())
    except Stopped as stopped:
        return None if _CUT.fullmatch(text, stopped.byte - at) or stopped.detail in _OPEN else stopped
    return None


def _plainly(text: bytes, *, at: int, oddities: Oddities, read: frozenset[str] | None = None) -> object:
    """Parse by the standard library, which takes what msgspec refuses: surrogates, and after us NaN and bad UTF-8.

    Args:
        read: the keys that count where they stand twice, None for all.
    """

    def members(pairs: Pairs) -> dict[str, object]:
        found, twice = once(pairs)
        oddities.repeated_keys += len(twice if read is None else read.intersection(twice))
        return found

    numbers, count = without_no_numbers(text)
    oddities.no_numbers += count
    spelled = numbers.decode("utf-8", "replace")
    try:
        value: object = json.loads(
            spelled, parse_float=_decimal, parse_int=_integer, parse_constant=_nothing, object_pairs_hook=members
        )
    except json.JSONDecodeError as error:
        control = "control character" in error.msg
        reason = StopReason.CONTROL_CHARACTER if control else StopReason.INVALID_JSON
        raise Stopped(reason, at + _byte(text, spelled, error.pos), error.msg) from None
    except RecursionError:
        raise Stopped(StopReason.INVALID_JSON, at, NESTED) from None
    if "�" in spelled or "\\ud" in spelled.lower():
        whole = _whole(value)
        oddities.bad_utf8 += whole != value or (b"\xef\xbf\xbd" not in text and "�" in spelled)
        return whole
    return value


def _decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except ArithmeticError:
        return text  # an exponent beyond what can be held


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= _MOST_DIGITS else text


def _nothing(_: str) -> None:
    return None


def _byte(text: bytes, spelled: str, place: int) -> int:
    """Where a place in the text is in bytes; exact where nothing before it was replaced."""
    return min(len(text), len(spelled[:place].encode("utf-8")))


def _whole(value: object) -> object:
    """The value with half surrogate pairs replaced: they cannot be written as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_whole(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        return {cast("str", _whole(key)): _whole(one) for key, one in cast("dict[str, object]", value).items()}
    return value


def _text(fields: Mapping[str, object], name: str, oddities: Oddities) -> str | None:
    value = fields.get(name)
    if value is None or isinstance(value, str):
        return value
    oddities.odd_fields += 1
    return None


def _id(fields: Mapping[str, object], name: str, oddities: Oddities) -> Id:
    value = fields.get(name)
    if value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, Decimal):
        return str(value)
    oddities.odd_fields += 1
    return None


def _number(fields: Mapping[str, object], name: str, oddities: Oddities) -> Decimal | None:
    value = fields.get(name)
    if isinstance(value, Decimal):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, str):  # a number as text, which is as exact
        try:
            return Decimal(value)
        except ArithmeticError:
            pass
    oddities.odd_fields += value is not None
    return None


def _object(fields: Mapping[str, object], name: str, oddities: Oddities) -> Mapping[str, object] | None:
    value = fields.get(name)
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    oddities.odd_fields += value is not None
    return None
