"""Every problem of a document that a person wrote, in one answer instead of one by one: pure."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

_KINDS: dict[object, str] = {int: "whole numbers", float: "numbers"}


def problems_of(value: object, kind: type[Struct], *, place: str = "") -> Iterator[str]:
    """What keeps a table from being a record of `kind`: unknown keys, missing ones, values of another type.

    Records inside are looked into; a tagged record's own tag is left to whoever chose `kind` by it.
    """
    if not isinstance(value, Mapping):
        yield f"{place or 'the document'}: is no table of keys and values"
        return
    table = cast("Mapping[str, object]", value)
    known = {field.encode_name: field for field in fields(kind)}
    tag = kind.__struct_config__.tag_field
    for key in table:
        if key not in known and key != tag:
            yield f"{_at(place, key)}: there is no such key{_meant(key, known)}"
    for key, field in known.items():
        if key in table:
            yield from _of_field(table[key], field, place=_at(place, key))
        elif field.required:
            yield f"{_at(place, key)}: is missing"


def _of_field(value: object, field: FieldInfo, *, place: str) -> Iterator[str]:
    inner = _records_in(field.type)
    if inner is None:
        yield from _of_value(value, field.type, place=place)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, item in enumerate(cast("Sequence[object]", value)):
            yield from problems_of(item, inner, place=f"{place}[{number}]")
    else:
        yield f"{place}: is no list"


def _records_in(kind: Any) -> type[Struct] | None:
    """The record of which a field holds a list, None of any other field."""
    members = get_args(kind)
    if get_origin(kind) is tuple and members and isinstance(members[0], type) and issubclass(members[0], Struct):
        return members[0]
    return None


def _of_value(value: object, kind: Any, *, place: str) -> Iterator[str]:
    try:
        msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        told = str(error)
        choices = tuple(_choices(kind))
        if choices and isinstance(value, str):
            yield f"{place}: is {value!r}; there are {', '.join(choices)}"
        else:
            yield f"{place}: {told[:1].lower()}{told[1:]}"


def _choices(kind: Any) -> Iterator[str]:
    """What a field of a closed set may hold, in words; nothing for other fields."""
    members: tuple[Any, ...] = get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        yield from (str(member.value) for member in kind)
    elif get_origin(kind) is Literal:
        yield from map(str, members)
    elif get_origin(kind) in (Union, UnionType):
        found = [name for member in members for name in _choices(member)]
        if found:
            yield from (_KINDS[member] for member in members if member in _KINDS)
            yield from found


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else str(key)


def _meant(key: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(str(key), list(known), n=1)
    return f"; {near[0]} is meant?" if near else ""
