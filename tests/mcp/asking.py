"""What the tests of the MCP tools have in common: evidence to look at, and questions as a client asks them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paritrace.mcp.places import Places
from paritrace.mcp.tools import answer
from paritrace.runs.scratch import Scratch

STEPS = 70  # of which all but the last differ in two pairs each: several pages

_HELD: list[Scratch] = []  # until the tests end


def places_of(*folders: Path) -> Places:
    """The folders as the server has them, with a private place of their own."""
    _HELD.append(Scratch(None))
    return Places(folders, scratch=_HELD[-1].folder)


def ask(places: Places, tool: str, /, **arguments: object) -> dict[str, Any]:
    """The answer of a tool that succeeds."""
    found = answer(places, tool, arguments)
    assert not found.is_error, found.document
    return found.document


def refusal(places: Places, tool: str, /, **arguments: object) -> dict[str, str]:
    """The error of a tool that refuses."""
    found = answer(places, tool, arguments)
    assert found.is_error
    error: dict[str, str] = found.document["error"]
    assert error["kind"] == "refused", error
    assert error["message"]
    assert error["fix"]
    return error


def keys(places: Places, kind: str, /) -> list[str]:
    return [row["key"] for row in ask(places, "list_evidence", kind=kind)["rows"]["items"]]


def pages(places: Places, tool: str, /, **arguments: object) -> Iterator[dict[str, Any]]:
    """Every page of a question, by the cursors of the answers."""
    cursor = ""
    while True:
        page = ask(places, tool, cursor=cursor, **arguments)
        yield page
        cursor = page["next_cursor"]
        if not cursor:
            return


def texts(plain: Any) -> Iterator[str]:
    """Every text of a document, names of fields included."""
    match plain:
        case str():
            yield plain
        case dict():
            for name, value in plain.items():
                yield name
                yield from texts(value)
        case list():
            for item in plain:
                yield from texts(item)
        case _:
            return
