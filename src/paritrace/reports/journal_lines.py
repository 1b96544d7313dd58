"""Finds the lines of a journal that hold given calls, so that a figure can be followed to the file (P9)."""

import re
from collections.abc import Collection, Iterable, Iterator

_CALL = re.compile(rb'\["c",(\d+),')


def lines_of_calls(chunks: Iterable[bytes], wanted: Collection[int], /) -> dict[int, int]:
    """Returns record id -> line number (from 1) for those of `wanted` that the journal holds; stops when all are found.

    Args:
        chunks: the bytes of calls.jsonl, in pieces of any size.
        wanted: record ids.
    """
    missing = set(wanted)
    found: dict[int, int] = {}
    for number, line in enumerate(_lines(chunks), start=1):
        if not missing:
            break
        call = _CALL.match(line)
        if call is not None and int(call.group(1)) in missing:
            found[int(call.group(1))] = number
            missing.discard(int(call.group(1)))
    return found


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest
