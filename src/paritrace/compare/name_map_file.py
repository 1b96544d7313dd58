"""Reads a file of maps of names; only what a named person has accepted is taken (CP-5)."""

from collections.abc import Iterator
from typing import cast

import msgspec

from paritrace.compare.proposals import NameMap, ReviewState
from paritrace.compare.renamings import Renaming, parse_map
from paritrace.errors import RequestError
from paritrace.evidence.problems import problems_of


def accepted_maps(data: bytes, *, name: str) -> tuple[Renaming, ...]:
    """The accepted maps of a file.

    Raises:
        RequestError: Refused, `bad_name_map`: `details` has every problem, such as maps that nobody has reviewed.
    """
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # the last: nested too deeply
        raise _refused(name, (f"not valid JSON: {error}",)) from error
    problems = tuple(problems_of(document, NameMap))
    if problems:
        raise _refused(name, problems)
    found = msgspec.convert(cast("dict[str, object]", document), NameMap)
    unmeant = tuple(_unreviewed(found))
    if unmeant:
        raise _refused(name, unmeant)
    return tuple(parse_map(one.rule) for one in found.maps if one.review is ReviewState.ACCEPTED)


def _unreviewed(found: NameMap) -> Iterator[str]:
    if not found.reviewer.strip():
        yield "reviewer: nobody is named"
    if not any(one.review is ReviewState.ACCEPTED for one in found.maps):
        yield "maps: none is accepted"
    for number, one in enumerate(found.maps):
        if one.review is ReviewState.PROPOSED:
            yield f"maps[{number}]: {one.rule} is proposed; accept or reject it"
        try:
            parse_map(one.rule)
        except RequestError as error:
            yield f"maps[{number}].rule: {error.message}"


def _refused(name: str, problems: tuple[str, ...]) -> RequestError:
    count = f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}"
    return RequestError(
        f"{name} is no reviewed map of names: {count}",
        code="bad_name_map",
        fix="look at every map, set its review to accepted or rejected, and name the reviewer",
        details=problems,
    )
