"""Reading on in records of a higher minor version: leave out fields this version does not know, and count them (EV-1).

Works on a document that was parsed without types, guided by the record type.
"""

from collections.abc import Callable
from typing import cast

import msgspec
from msgspec import inspect


class Pruned(msgspec.Struct, frozen=True):
    value: object
    unknown_fields: int


def prune(value: object, record: object) -> Pruned:
    """Return `value` without the keys and trailing elements that `record`, a type or union, has no field for."""
    return _prune(value, inspect.type_info(record))


def _prune(value: object, kind: inspect.Type) -> Pruned:
    if isinstance(kind, inspect.UnionType):
        return _prune(value, _member(value, kind))
    if isinstance(value, dict):
        return _object(cast("dict[str, object]", value), kind)
    if isinstance(value, list):
        return _array(cast("list[object]", value), kind)
    return Pruned(value, 0)


def _object(value: dict[str, object], kind: inspect.Type) -> Pruned:
    match kind:
        case inspect.StructType(array_like=False):
            fields = {field.encode_name: field.type for field in kind.fields}
        case inspect.DictType():
            fields = dict.fromkeys(value, kind.value_type)
        case _:
            return Pruned(value, 0)
    tag = kind.tag_field if isinstance(kind, inspect.StructType) else None
    pruned = {key: _prune(item, fields[key]) for key, item in value.items() if key in fields}
    kept = {key: item.value for key, item in pruned.items()} | ({tag: value[tag]} if tag in value else {})
    unknown = len(value) - len(kept)
    return Pruned(kept, unknown + sum(item.unknown_fields for item in pruned.values()))


def _array(value: list[object], kind: inspect.Type) -> Pruned:
    lead = 0
    match kind:
        case inspect.StructType(array_like=True):
            lead = 0 if kind.tag is None else 1
            kinds = [field.type for field in kind.fields]
        case inspect.TupleType():
            kinds = list(kind.item_types)
        case inspect.VarTupleType() | inspect.ListType():
            kinds = [kind.item_type] * len(value)
        case _:
            return Pruned(value, 0)
    pruned = [_prune(item, its) for item, its in zip(value[lead:], kinds, strict=False)]
    surplus = value[lead + len(pruned) :] if isinstance(kind, inspect.StructType) else []
    unknown = len(surplus) + sum(item.unknown_fields for item in pruned)
    rest = [] if surplus else value[lead + len(pruned) :]
    return Pruned([*value[:lead], *(item.value for item in pruned), *rest], unknown)


def _member(value: object, kind: inspect.UnionType) -> inspect.Type:
    """Return the member of a union that the shape (and the tag) of `value` selects."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return _first(kind, lambda member: _takes_object(fields, member))
    if isinstance(value, list):
        items = cast("list[object]", value)
        return _first(kind, lambda member: _takes_array(items, member))
    return inspect.AnyType()


def _first(kind: inspect.UnionType, takes: Callable[[inspect.Type], bool]) -> inspect.Type:
    return next((member for member in kind.types if takes(member)), inspect.AnyType())


def _takes_object(value: dict[str, object], member: inspect.Type) -> bool:
    if isinstance(member, inspect.StructType):
        return not member.array_like and (member.tag_field is None or value.get(member.tag_field) == member.tag)
    return isinstance(member, inspect.DictType)


def _takes_array(value: list[object], member: inspect.Type) -> bool:
    if isinstance(member, inspect.StructType):
        return member.array_like and (member.tag is None or value[:1] == [member.tag])
    return isinstance(member, inspect.TupleType | inspect.VarTupleType | inspect.ListType)
