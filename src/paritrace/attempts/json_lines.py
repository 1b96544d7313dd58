"""On which lines of a JSON document values stand, by JSON Pointers, in one pass: pure (P9)."""

from collections.abc import Iterable, Iterator
from json.decoder import JSONDecodeError, JSONDecoder

_SPACE = " \t\n\r"
_DECODER = JSONDecoder()


def lines_of_pointers(text: str, pointers: Iterable[str]) -> dict[str, int]:
    """Returns the line, from 1, on which each pointed value begins; a pointer that leads nowhere is left out.

    Only what a pointer leads into is taken apart, everything else is passed over by the decoder.
    """
    wanted = {pointer: _tokens(pointer) for pointer in pointers}
    try:
        places = sorted((at, pointer) for pointer, at in _found(text, _skipped(text, 0), wanted))
    except (JSONDecodeError, IndexError, RecursionError):
        return {}
    lines: dict[str, int] = {}
    line, before = 1, 0
    for at, pointer in places:
        line += text.count("\n", before, at)
        before = at
        lines[pointer] = line
    return lines


def _tokens(pointer: str) -> tuple[str, ...]:
    """The reference tokens of a pointer (RFC 6901)."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def _found(text: str, at: int, wanted: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, int]]:
    """Yields the places of all pointers that lead into the value at a place."""
    yield from ((pointer, at) for pointer, tokens in wanted.items() if not tokens)
    deeper: dict[str, dict[str, tuple[str, ...]]] = {}
    for pointer, tokens in wanted.items():
        if tokens:
            deeper.setdefault(tokens[0], {})[pointer] = tokens[1:]
    if not deeper or text[at] not in "{[":
        return
    for name, place in _members(text, at) if text[at] == "{" else _elements(text, at):
        if name in deeper:
            yield from _found(text, place, deeper[name])


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yields name and place of every member of an object."""
    at = _skipped(text, at + 1)
    while text[at] != "}":
        name, end = _DECODER.raw_decode(text, at)
        at = _skipped(text, _skipped(text, end) + 1)
        yield name, at
        at = _after(text, at)


def _elements(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yields index and place of every element of an array."""
    at = _skipped(text, at + 1)
    number = 0
    while text[at] != "]":
        yield str(number), at
        number += 1
        at = _after(text, at)


def _after(text: str, at: int) -> int:
    """The place behind a value and the comma that may follow."""
    _, end = _DECODER.raw_decode(text, at)
    at = _skipped(text, end)
    return _skipped(text, at + 1) if text[at] == "," else at


def _skipped(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
