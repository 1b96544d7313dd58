"""Cursors of paged answers: how far one question was answered, good for that question alone (AU-12)."""

import re

from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.evidence.digests import sha256_hex

DIGITS = 16
_CURSOR = re.compile(rf"([0-9a-f]{{{DIGITS}}})-([0-9]{{1,18}})")


def about(*, answered: str, question: Struct) -> str:
    """Returns what a cursor is about: the digest of what is asked, and the question without its cursor and limit."""
    return sha256_hex(f"{answered}\0{question!r}".encode("utf-8", "backslashreplace"))[:DIGITS]


def cursor_of(what: str, /, *, offset: int) -> str:
    """Returns the cursor that goes on at `offset`."""
    return f"{what}-{offset}"


def offset_of(cursor: str, what: str, /) -> int:
    """Returns where to go on; 0 for no cursor.

    Raises:
        RequestError: Refused, `bad_cursor`: no cursor, of another question, or of evidence that has changed since.
    """
    if not cursor:
        return 0
    found = _CURSOR.fullmatch(cursor)
    if found is None or found[1] != what:
        raise RequestError(
            "the cursor is of another question, or what it was about has changed",
            code="bad_cursor",
            fix="ask again without a cursor, then go on with the `next_cursor` of each answer and the same arguments",
        )
    return int(found[2])
