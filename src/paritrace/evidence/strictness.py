"""What strict JSON forbids and ordinary parsers let pass, found with its byte offset (EV-2).

Walks the tokens of one document. Syntax errors stop the walk silently: the typed decoder names those.
"""

import re
from enum import StrEnum
from math import isfinite

from msgspec import Struct

MAX_DEPTH = 64
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_MOST_CHARACTERS = 20  # of an integer that may be within them

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+0-9A-Za-z_.]+|[{}\[\],:]|[ \t\r\n]+', re.DOTALL)
_INTEGER = re.compile(rb"-?(?:0|[1-9][0-9]*)\Z")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_ESCAPE_LENGTH = 6
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NOT_FINITE = frozenset({b"nan", b"infinity", b"inf"})
_OPEN, _CLOSE = frozenset(b"{["), frozenset(b"}]")


def fits(token: bytes | str, /) -> bool:
    """Say whether an integer, as it is spelled, is within 64 bits."""
    return len(token) <= _MOST_CHARACTERS and _SMALLEST <= int(token) <= _LARGEST


class Breach(StrEnum):
    DUPLICATE_KEY = "duplicate_key"
    NOT_FINITE = "not_finite"
    NUMBER_OVERFLOW = "number_overflow"
    INTEGER_TOO_LARGE = "integer_too_large"
    LONE_SURROGATE = "lone_surrogate"
    CONTROL_CHARACTER = "control_character"
    INVALID_UTF8 = "invalid_utf8"
    TOO_DEEP = "too_deep"
    SEVERAL_VALUES = "several_values"


class Violation(Struct, frozen=True):
    breach: Breach
    offset: int
    detail: str


class Walk(Struct, frozen=True):
    """`violation`: the first one; `values`: offsets at which the top-level values start."""

    violation: Violation | None
    values: tuple[int, ...]


def walk(data: bytes) -> Walk:
    """Return the first breach of strictness in `data`, which holds one JSON document."""
    walker, position = _Walker(), 0
    while (token := _TOKEN.match(data, position)) is not None:
        walker.take(token.group(), token.start())
        position = token.end()
        if walker.violation is not None and walker.violation.breach is not Breach.SEVERAL_VALUES:
            break
    if walker.violation is None and data[position : position + 1] == b'"':
        walker.unterminated(data[position:], position)
    return Walk(violation=walker.violation, values=tuple(walker.values))


def violations(data: bytes, *, most: int) -> tuple[Violation, ...]:
    """Return every breach in one document, in order of appearance, at most `most` of them."""
    walker, position = _Walker(), 0
    found: list[Violation] = []
    while len(found) < most and (token := _TOKEN.match(data, position)) is not None:
        walker.take(token.group(), token.start())
        position = token.end()
        if walker.violation is not None:
            found.append(walker.violation)
            walker.violation = None
    return tuple(found)


class _Walker:
    """State of one walk: the open containers, with the keys seen in each object (None for an array)."""

    def __init__(self) -> None:
        self.violation: Violation | None = None
        self.values: list[int] = []
        self._open: list[set[bytes] | None] = []
        self._key_due = False

    def take(self, token: bytes, offset: int) -> None:
        first = token[0]
        if first in b" \t\r\n:":
            return
        if first == 0x2C:  # a comma
            self._key_due = bool(self._open) and self._open[-1] is not None
        elif first in _CLOSE:
            if self._open:
                self._open.pop()
            self._key_due = False
        else:
            self._value(token, offset)

    def unterminated(self, rest: bytes, offset: int) -> None:
        """Look into a string that never ends for the character that a parser would stop at."""
        found = _CONTROL.search(rest)
        if found is not None:
            self._report(Breach.CONTROL_CHARACTER, offset + found.start(), f"0x{rest[found.start()]:02x} in a string")

    def _value(self, token: bytes, offset: int) -> None:
        if not self._open:
            self.values.append(offset)
            if len(self.values) == 2:
                self._report(Breach.SEVERAL_VALUES, offset, f"extra data at byte {offset}")
        if token[0] in _OPEN:
            self._enter(token, offset)
        elif token[0] == 0x22:  # a quote
            self._string(token, offset)
        else:
            self._word(token, offset)

    def _enter(self, token: bytes, offset: int) -> None:
        self._open.append(set() if token == b"{" else None)
        self._key_due = token == b"{"
        if len(self._open) > MAX_DEPTH:
            self._report(Breach.TOO_DEEP, offset, f"nested deeper than {MAX_DEPTH}")

    def _string(self, token: bytes, offset: int) -> None:
        text = self._text(token, offset)
        keys = self._open[-1] if self._open else None
        if keys is None or not self._key_due:
            return
        self._key_due = False
        if text in keys:
            self._report(Breach.DUPLICATE_KEY, offset, f"key {token.decode('utf-8', 'replace')} occurs twice")
        keys.add(text)

    def _text(self, token: bytes, offset: int) -> bytes:
        """Return the string's characters as UTF-8, or what stands there after reporting why that is impossible."""
        control = _CONTROL.search(token)
        if control is not None:
            where = control.start()
            self._report(Breach.CONTROL_CHARACTER, offset + where, f"0x{token[where]:02x} in a string")
        try:
            token.decode("utf-8")
        except UnicodeDecodeError as error:
            self._report(Breach.INVALID_UTF8, offset + error.start, "bytes that are not UTF-8 in a string")
            return token
        if b"\\" not in token:
            return token[1:-1]
        return self._unescaped(token, offset)

    def _unescaped(self, token: bytes, offset: int) -> bytes:
        lone = _lone_half(token)
        if lone is not None:
            self._report(Breach.LONE_SURROGATE, offset + lone, "half of a surrogate pair")
            return token
        halves = _ESCAPE.sub(_plain, token[1:-1]).decode("utf-8", "surrogatepass")
        return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le").encode("utf-8")

    def _word(self, token: bytes, offset: int) -> None:
        if token.lower().lstrip(b"+-") in _NOT_FINITE:
            self._report(Breach.NOT_FINITE, offset, f"{token.decode('ascii')} is not JSON")
        elif _INTEGER.match(token) is not None:
            if not fits(token):
                self._report(Breach.INTEGER_TOO_LARGE, offset, "an integer beyond 64 bits; large ids are strings")
        elif _NUMBER.match(token) is not None and not isfinite(float(token)):
            self._report(Breach.NUMBER_OVERFLOW, offset, "a number that overflows to infinity")

    def _report(self, breach: Breach, offset: int, detail: str) -> None:
        if self.violation is None:
            self.violation = Violation(breach=breach, offset=offset, detail=detail)


_SHORT = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def _lone_half(token: bytes) -> int | None:
    """Return where an escaped half of a surrogate pair stands without its other half."""
    high: int | None = None
    for escape in _ESCAPE.finditer(token):
        unit = 0 if escape.group(1) is None else int(escape.group(1), 16)
        if 0xDC00 <= unit <= 0xDFFF:
            if high is None or escape.start() != high + _ESCAPE_LENGTH:
                return escape.start() if high is None else high
            high = None
        elif high is not None:
            return high
        elif 0xD800 <= unit <= 0xDBFF:
            high = escape.start()
    return high


def _plain(escape: "re.Match[bytes]") -> bytes:
    """Return an escape as UTF-8, each half of a surrogate pair by itself."""
    if escape.group(1) is None:
        return _SHORT.get(escape.group()[1:], escape.group())
    return chr(int(escape.group(1), 16)).encode("utf-8", "surrogatepass")
