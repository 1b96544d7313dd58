"""Where values end in JSON text that is read in pieces, and words that are no numbers."""

import re

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,:{}\[\]\"]+(?=[\s,:{}\[\]\"])")
_NO_NUMBER = re.compile(
    rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")|([:,\[]\s*+)[-+]?+(?:nan|inf(?:inity)?)(?=\s*+[,}\]])', re.DOTALL | re.IGNORECASE
)
_BOUNDARY = re.compile(rb"}\s*+,(?=\s*+{)")
_BOUNDARIES_TRIED = 3  # one may lie inside an event: an argument can be a list of objects
_BOUNDARY_SEARCH_BYTES = 1 << 16

OPEN, CLOSE = frozenset(b"{["), frozenset(b"}]")
QUOTE, BACKSLASH, COMMA, COLON = b'",:'[0], b"\\"[0], b",:"[0], b":"[0]


def end_of_value(text: bytes, start: int, /) -> int | None:
    """Return the offset behind the JSON value that begins at `start`, None where the text ends before it does.

    Brackets inside strings do not count. The value's inside is not checked: the parser does that.
    """
    first = text[start]
    if first == QUOTE:
        found = _STRING.match(text, start)
        return None if found is None else found.end()
    if first not in OPEN:
        found = _SCALAR.match(text, start)
        return None if found is None else found.end()
    depth = 0
    for token in _TOKEN.finditer(text, start):
        mark = text[token.start()]
        if mark in OPEN:
            depth += 1
        elif mark in CLOSE:
            depth -= 1
            if depth == 0:
                return token.end()
        elif token.end() - token.start() == 1:
            return None  # a string that has not ended
    return None


def boundaries(text: bytes, start: int, end: int, /) -> list[int]:
    """Return offsets in [start, end) of commas that seem to stand between two events, the last first."""
    begin = max(start, end - _BOUNDARY_SEARCH_BYTES)
    found = [match.end() - 1 for match in _BOUNDARY.finditer(text, begin, end)]
    return found[: -_BOUNDARIES_TRIED - 1 : -1]


def without_no_numbers(text: bytes, /) -> tuple[bytes, int]:
    """Return the text with each bare NaN or infinity as null, and how many there were; strings stay as they are."""
    count = 0

    def told(match: "re.Match[bytes]") -> bytes:
        nonlocal count
        if match[1] is not None:
            return match[1]
        count += 1
        return match[2] + b"null"

    return _NO_NUMBER.sub(told, text), count
