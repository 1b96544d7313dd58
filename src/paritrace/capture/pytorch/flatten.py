"""Tensors inside nested arguments and results, with their path (CA-4: slots are flattened by pytree path)."""

from __future__ import annotations

import dataclasses
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping
from types import MemberDescriptorType
from typing import Any, cast

import torch

_SINGLE = (int, float, str, bytes, torch.nn.Module)
_PLAIN = frozenset({int, float, str, bytes, bool, type(None)})
_NAMED = _PLAIN | {complex, torch.dtype, torch.device}  # as keys: written alike in every process
_MRO = vars(type)["__mro__"].__get__  # a metaclass may answer for itself
_CLASS_DICTIONARY = vars(type)["__dict__"].__get__
MAX_DEPTH = 16  # deeper nests are data structures of their own, not arguments
MOST_CONTAINERS = 100_000  # below one value; a graph whose nodes hold each other has more paths than anybody can walk


class TooManyContainersError(Exception):
    """A value whose containers are not walked to the end."""


def tensors(value: Any, path: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Each tensor below `value` with its path, such as `args[0].hidden` or `out[1]`, in a fixed order.

    Told by the type alone: `isinstance` asks a value for its class, which may run code of the workload. A container
    inside itself is not entered again.

    Raises:
        TooManyContainersError: more than `MOST_CONTAINERS` on the way.
    """
    return _Walk().below(value, path, 0)


class _Walk:
    def __init__(self) -> None:
        self._around: list[int] = []  # identities of the containers that are being walked
        self._num_containers = 0

    def below(self, value: Any, path: str, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
        cls: type = type(value)
        if issubclass(cls, torch.Tensor):
            yield path, value
        elif depth < MAX_DEPTH and value is not None and not issubclass(cls, _SINGLE) and id(value) not in self._around:
            self._around.append(id(value))
            for part, item in _parts(value, cls):
                if type(item) not in _PLAIN:
                    yield from self.below(item, path + part, depth + 1)
            self._around.pop()
            self._num_containers += 1
            if self._num_containers > MOST_CONTAINERS:
                raise TooManyContainersError


def _parts(value: Any, cls: type) -> Iterator[tuple[str, Any]]:
    """What a container holds, with what each part adds to the path; nothing for what is none."""
    if issubclass(cls, Mapping):
        for index, (key, item) in enumerate(_items(value, cls)):
            if type(item) not in _PLAIN:
                yield _key(key, index), item
    elif issubclass(cls, tuple) and isinstance(fields := vars(cls).get("_fields"), tuple):
        for name, item in zip(fields, value, strict=True):
            yield f".{name}", item
    elif issubclass(cls, (list, tuple)):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif not issubclass(cls, type) and any("__dataclass_fields__" in _CLASS_DICTIONARY(one) for one in _MRO(cls)):
        for field in dataclasses.fields(cast(Any, cls)):
            yield f".{field.name}", _field(value, cls, field.name)


def _key(key: Any, index: int) -> str:
    """A key in a path. What an object writes of itself may cost much or name its address: it goes by its position."""
    if issubclass(type(key), str):
        return f".{key}"
    named = type(key) in _NAMED or (type(key) is tuple and all(type(part) in _NAMED for part in key))
    return f"[{key!r}]" if named else f"[key {index}]"


def _items(value: Any, cls: type) -> Iterable[tuple[Any, Any]]:
    """The items of a mapping; of a dictionary those that are in it, whatever its class makes of them."""
    held = vars(value).get("data") if issubclass(cls, UserDict) else value
    return dict.items(held) if issubclass(type(held), dict) else value.items()


def _field(value: Any, cls: type, name: str) -> Any:
    """What a field of a dataclass holds, in its dictionary or in a slot; no property of the workload is asked."""
    slot = next((found for one in cls.__mro__ if (found := vars(one).get(name)) is not None), None)
    if type(slot) is MemberDescriptorType:
        try:
            return slot.__get__(value, cls)
        except AttributeError:  # a slot that nothing was put into
            return None
    return vars(value).get(name) if cls.__dictoffset__ else None
