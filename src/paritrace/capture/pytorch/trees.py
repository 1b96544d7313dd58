"""Arguments and results of a module call as trees: containers, tensors, plain values, and what cannot be kept (CA-9).

Paths are spelt as those of slots (`flatten.tensors`), so that a leaf and its slot have one name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from paritrace.capture.pytorch.flatten import MAX_DEPTH
from paritrace.evidence.dumps import Branch, KeptTensor, Missing, Node, PlainLeaf, TensorLeaf
from paritrace.evidence.gaps import CaptureGap, Gap

MAX_LEAVES = 100_000  # a longer list of numbers belongs into a tensor; this bounds the journal's line
MAX_TEXT = 1000  # characters of a string: names of modes, not data (P7)
MAX_DIGITS = 4000  # of a whole number; Python refuses to spell some longer ones


class Trees:
    """Makes the trees of one golden call; `keep` stores a tensor under its path."""

    def __init__(self, keep: Callable[[torch.Tensor, str], KeptTensor]) -> None:
        self._keep = keep
        self._left = MAX_LEAVES

    def of(self, value: object, path: str, depth: int = 0) -> Node:
        """The tree of a value. Reads nothing but fields, items and tensors."""
        self._left -= 1
        if self._left < 0 or depth >= MAX_DEPTH:
            return _missing(path, "nested too deep" if depth >= MAX_DEPTH else f"more than {MAX_LEAVES} values")
        if isinstance(value, torch.Tensor):
            return TensorLeaf(path, self._keep(value, path))
        plain = _plain(value)
        if plain is not None:
            return plain
        return self._container(value, path, depth + 1) or _missing(path, _class(value))

    def _container(self, value: object, path: str, depth: int) -> Branch | None:
        if isinstance(value, Mapping):
            return self._mapping(value, path, depth)
        if isinstance(value, tuple) and isinstance(fields := vars(type(value)).get("_fields"), tuple):
            return self._fields("named_tuple", value, zip(fields, value, strict=True), (path, depth))
        if isinstance(value, (list, tuple)):
            kind = "size" if isinstance(value, torch.Size) else "list" if isinstance(value, list) else "tuple"
            own = "" if type(value) in (list, tuple, torch.Size) else _class(value)
            items = tuple(self.of(item, f"{path}[{index}]", depth) for index, item in enumerate(value))
            return Branch(kind, items, cls=own)
        if isinstance(value, slice):
            return Branch("slice", tuple(self.of(part, path, depth) for part in (value.start, value.stop, value.step)))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            named = ((field.name, vars(value).get(field.name)) for field in dataclasses.fields(value))
            return self._fields("dataclass", value, named, (path, depth))
        return None

    def _mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> Branch | None:
        keys = [_plain(key) for key in value]
        if any(key is None for key in keys):
            return None
        items = tuple(
            self.of(item, f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]", depth)
            for key, item in value.items()
        )
        own = "" if type(value) is dict else _class(value)
        return Branch("dict", items, tuple(key for key in keys if key is not None), cls=own)

    def _fields(self, kind: str, value: object, fields: Iterable[tuple[str, object]], place: tuple[str, int]) -> Branch:
        path, depth = place
        named = [(name, self.of(item, f"{path}.{name}", depth)) for name, item in fields]
        keys = tuple(PlainLeaf("str", name) for name, _ in named)
        return Branch(kind, tuple(item for _, item in named), keys, cls=_class(value))


def _plain(value: object) -> PlainLeaf | None:
    match value:
        case None:
            return PlainLeaf("none")
        case bool():
            return PlainLeaf("bool", str(value))
        case int():
            return PlainLeaf("int", str(int(value))) if int(value).bit_length() < 3 * MAX_DIGITS else None
        case float():
            return PlainLeaf("float", float.hex(value))
        case complex():
            return PlainLeaf("complex", f"{value.real.hex()} {value.imag.hex()}")
        case str():
            return PlainLeaf("str", str(value)) if len(value) <= MAX_TEXT else None
        case torch.dtype():
            return PlainLeaf("dtype", str(value).partition(".")[2])
        case torch.layout():
            return PlainLeaf("layout", str(value).partition(".")[2])
        case torch.device():
            return PlainLeaf("device", str(value))
        case _:
            return PlainLeaf("ellipsis") if value is Ellipsis else None


def _missing(path: str, what: str) -> Missing:
    return Missing(path, Gap(CaptureGap.NOT_COLLECTED, what))


def _class(value: object) -> str:
    if isinstance(value, (str, int)):
        return f"a text of {len(value)} characters" if isinstance(value, str) else "a very large number"
    return f"{type(value).__module__}:{type(value).__qualname__}"
