"""Reads an alignment map as far as it can be read without its artifact, keeping every problem of it (CP-14): pure."""

from typing import NamedTuple, cast

import msgspec

from paritrace.compare.alignment import AlignmentMap, PairReview, SlotReview
from paritrace.evidence.problems import problems_of


class ReadMap(NamedTuple):
    """The map with its unreadable entries left out (None where nothing can be read), and what is wrong with it.

    `numbers`: the place in the file of each entry that is left, of pairs and of slots.
    """

    review: AlignmentMap | None
    problems: tuple[str, ...]
    numbers: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


def read_map(data: bytes) -> ReadMap:
    """Read a map; an entry that is no entry does not keep the others from being looked at."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # the last: nested too deeply
        return ReadMap(None, (f"not valid JSON: {error}",))
    if not isinstance(document, dict):
        return ReadMap(None, ("the document is no JSON object",))
    table = cast("dict[str, object]", document)
    head = {key: value for key, value in table.items() if key not in _LISTS}
    problems = list(problems_of({**_FILLED, **head}, AlignmentMap))
    problems += [f"{key}: is missing" for key in _NEEDED if key not in table]
    kept: dict[str, list[object]] = {}
    numbers: dict[str, tuple[int, ...]] = {}
    for name, kind in _LISTS.items():
        kept[name], numbers[name], wrong = _entries(table.get(name, []), name, kind)
        problems += wrong
    if not table.get("pairs") and not table.get("slots"):
        problems.append("the map says nothing: neither pairs nor slots")
    sound = {key: value for key, value in head.items() if not any(problems_of({**_FILLED, key: value}, AlignmentMap))}
    review = msgspec.convert({**_FILLED, **sound, **kept}, AlignmentMap)
    return ReadMap(review, tuple(problems), (numbers["pairs"], numbers["slots"]))


_LISTS: dict[str, type[PairReview] | type[SlotReview]] = {"pairs": PairReview, "slots": SlotReview}
_NEEDED = ("format", "version", "artifact_sha256", "reviewer")
_FILLED: dict[str, object] = {
    "format": "paritrace-alignment-map",
    "version": "1.0",
    "artifact_sha256": "",
    "reviewer": "",
}


def _entries(
    value: object, name: str, kind: type[PairReview] | type[SlotReview]
) -> tuple[list[object], tuple[int, ...], list[str]]:
    if not isinstance(value, list):
        return [], (), [f"{name}: is no list"]
    kept: list[object] = []
    numbers: list[int] = []
    problems: list[str] = []
    for number, entry in enumerate(cast("list[object]", value)):
        wrong = list(problems_of(entry, kind, place=f"{name}[{number}]"))
        problems += wrong
        if not wrong:
            kept.append(entry)
            numbers.append(number)
    return kept, tuple(numbers), problems
