"""Lines of JSON as evidence: each is read by itself, one that is refused does not hide the others: pure."""

from collections.abc import Iterator
from typing import cast

import msgspec
from msgspec import Struct


class Line(Struct, frozen=True):
    """One line that is a JSON object, by its number from 1."""

    number: int
    content: dict[str, object]


class Refused(Struct, frozen=True):
    """A line that is none: torn, not JSON (a bare NaN is not), or no object. `why` never quotes the line (P7)."""

    number: int
    why: str
    torn: bool = False  # the last one, without its newline


def lines_of(data: bytes) -> Iterator[Line | Refused]:
    """Yields the lines that are not blank, in order."""
    pieces = data.split(b"\n")
    for number, piece in enumerate(pieces, 1):
        if piece.strip():
            yield _line(number, piece, last=number == len(pieces))


def _line(number: int, piece: bytes, *, last: bool) -> Line | Refused:
    try:
        content = msgspec.json.decode(piece)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Refused(number, _why(error), torn=last)
    if not isinstance(content, dict):
        return Refused(number, "is no JSON object")
    return Line(number, cast("dict[str, object]", content))


def _why(error: Exception) -> str:
    """The kind of fault without the text around it."""
    return f"is no JSON ({str(error).partition(':')[0]})"
