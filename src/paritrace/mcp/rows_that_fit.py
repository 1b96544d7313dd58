"""How many rows a page has room for (AU-12)."""

from typing import TypeVar

from msgspec import Struct

from paritrace.mcp.telling import ANSWER_CHARACTERS, answer_of, size_of

ROWS_CHARACTERS = ANSWER_CHARACTERS - 3000  # of the rows of a page; the rest is counts and what was left out

Row = TypeVar("Row", bound=Struct)


def within(rows: list[Row], /) -> list[Row]:
    """Returns the first rows, as many as an answer has room for; at least one."""
    room = ROWS_CHARACTERS
    for number, row in enumerate(rows):
        room -= size_of(answer_of(row)) + 1
        if room < 0 and number:
            return rows[:number]
    return rows
