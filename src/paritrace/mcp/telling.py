"""What an answer may look like: texts escaped and bounded, lists shortened until the whole is small (AU-12, AU-13).

Texts of an answer come from whoever wrote the workload. They are made harmless in one place, here, for every answer
there is; what is left out of a list is counted.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from paritrace.errors import InternalError
from paritrace.reports.harmless import harmless, shorten_text

ANSWER_CHARACTERS = 16_000
"""Of one answer as JSON in ASCII. Clients cap answers at about 25,000 tokens: at one token a character it is below."""
TEXT_CHARACTERS = (300, 100, 40)  # of one text; the shorter ones only where an answer is too long otherwise

Item = TypeVar("Item")
Made = TypeVar("Made")
Plain = Any  # what JSON knows: dict, list, str, int, float, bool, None


class Listing(Struct, Generic[Item], frozen=True):
    """A list with its true length: `items` are the first `shown` of `total`."""

    total: int
    shown: int
    items: tuple[Item, ...]


def listing(items: Sequence[Item], /, *, total: int | None = None) -> Listing[Item]:
    """Returns a listing of all items, or of the first ones of `total`."""
    return Listing(len(items) if total is None else total, len(items), tuple(items))


def listed(items: Iterable[Made], make: Callable[[Made], Item], /) -> Listing[Item]:
    """Returns a listing of what `make` makes of each item."""
    return listing([make(item) for item in items])


def numbers(of: Mapping[str, int], /) -> Listing[str]:
    """Returns numbers by name as texts: names come from evidence, and there is no telling how many there are."""
    return listing([f"{name}: {number}" for name, number in of.items()])


def told(text: str, /, *, most: int = TEXT_CHARACTERS[0]) -> str:
    """Returns a text without control characters, in at most `most` characters; of a longer one both ends are kept."""
    return shorten_text(harmless(text[: 2 * most] + text[-2 * most :] if len(text) > 4 * most else text), most=most)


def answer_of(record: Struct, /) -> dict[str, Plain]:
    """Returns an answer as JSON knows it, within ANSWER_CHARACTERS.

    Where it is longer, the listing that takes most is halved, again and again; its `total` stays what it is. Only then
    are texts shortened further.
    """
    plain = cast("dict[str, Plain]", msgspec.to_builtins(record, str_keys=True))
    documents = (cast("dict[str, Plain]", _safe(plain, most)) for most in TEXT_CHARACTERS)
    found = next((document for document in documents if _fitted(document)), None)
    if found is None:  # no record of ours is that large without its lists
        raise InternalError("an answer is too large", code="answer_too_large", fix="report the tool and its arguments")
    return found


def size_of(plain: Plain, /) -> int:
    """Returns the length of a value as JSON in ASCII: no client counts more characters."""
    return len(json.dumps(plain, separators=(",", ":")))


def _safe(plain: Plain, most: int) -> Plain:
    match plain:
        case str():
            return told(plain, most=most)
        case dict():
            pairs = cast("dict[str, Plain]", plain).items()
            return {told(name, most=most): _safe(value, most) for name, value in pairs}
        case list() | tuple():
            return [_safe(item, most) for item in cast("list[Plain]", plain)]
        case float() if plain != plain or plain in (float("inf"), float("-inf")):
            return None
        case _:
            return plain


def _fitted(document: dict[str, Plain]) -> bool:
    """Shortens the listings of a document; returns whether it is small enough."""
    while size_of(document) > ANSWER_CHARACTERS:
        longest = max(_listings(document), key=lambda one: size_of(one["items"]), default=None)
        if longest is None or not longest["items"]:
            return False
        longest["items"] = longest["items"][: len(longest["items"]) // 2]
        longest["shown"] = len(longest["items"])
    return True


def _listings(plain: Plain) -> Iterator[dict[str, Plain]]:
    if isinstance(plain, dict):
        found = cast("dict[str, Plain]", plain)
        if found.keys() == {"total", "shown", "items"}:
            yield found
        for value in found.values():
            yield from _listings(value)
    elif isinstance(plain, list):
        for item in cast("list[Plain]", plain):  # type: ignore[redundant-cast]
            yield from _listings(item)
