"""Reading on in records of a higher minor version: leave out fields this version does not know, and count them (EV-1).

Works on a document that was parsed without types, guided by the record type.
"""

import msgspec
from msgspec import inspect


class Pruned(msgspec.Struct, frozen=True):
    value: object
    unknown_fields: int


def prune(value: object, record: type) -> Pruned:
    """Return `value` without the keys and trailing elements that `record` has no field for."""
    return _prune(value, inspect.type_info(record))


def _prune(value: object, kind: inspect.Type) -> Pruned:
    match kind, value:
        case inspect.StructType(array_like=False), dict():
            return _object(value, kind)
        case inspect.StructType(array_like=True), list():
            return _row(value, kind)
        case inspect.UnionType(), _:
            return _prune(value, _member(value, kind))
        case inspect.VarTupleType() | inspect.ListType(), list():
            return _items(value, [kind.item_type] * len(value))
        case inspect.TupleType(), list():
            return _items(value, list(kind.item_types))
        case inspect.DictType(), dict():
            items = _items(list(value.values()), [kind.value_type] * len(value))
            return Pruned(dict(zip(value, _as_list(items.value), strict=True)), items.unknown_fields)
        case _:
            return Pruned(value, 0)


def _object(value: dict[object, object], kind: inspect.StructType) -> Pruned:
    fields = {field.encode_name: field.type for field in kind.fields}
    tag = kind.tag_field
    kept = {key: _prune(item, fields[key]) for key, item in value.items() if isinstance(key, str) and key in fields}
    unknown = sum(1 for key in value if key not in fields and key != tag)
    plain: dict[str, object] = {key: found.value for key, found in kept.items()}
    if tag is not None and tag in value:
        plain[tag] = value[tag]
    return Pruned(plain, unknown + sum(found.unknown_fields for found in kept.values()))


def _row(value: list[object], kind: inspect.StructType) -> Pruned:
    lead = 0 if kind.tag is None else 1
    known = lead + len(kind.fields)
    items = _items(value[lead:known], [field.type for field in kind.fields])
    return Pruned(value[:lead] + _as_list(items.value), items.unknown_fields + max(0, len(value) - known))


def _items(values: list[object], kinds: list[inspect.Type]) -> Pruned:
    found = [_prune(value, kind) for value, kind in zip(values, kinds, strict=False)]
    rest = values[len(found) :]
    return Pruned([one.value for one in found] + rest, sum(one.unknown_fields for one in found))


def _member(value: object, kind: inspect.UnionType) -> inspect.Type:
    """Return the member of a union that the shape (and the tag) of `value` selects."""
    for member in kind.types:
        match member, value:
            case inspect.StructType(array_like=False), dict():
                if member.tag_field is None or value.get(member.tag_field) == member.tag:
                    return member
            case inspect.StructType(array_like=True), list():
                if member.tag is None or value[:1] == [member.tag]:
                    return member
            case inspect.TupleType() | inspect.VarTupleType() | inspect.ListType(), list():
                return member
            case inspect.DictType(), dict():
                return member
            case _:
                continue
    return inspect.AnyType()


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
