"""Tensors inside nested arguments and results, with their path (CA-4: slots are flattened by pytree path)."""

from __future__ import annotations

import dataclasses
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping
from types import MemberDescriptorType
from typing import Any

import torch

_SINGLE = (int, float, str, bytes, torch.nn.Module)
MAX_DEPTH = 16  # deeper nests are data structures of their own, not arguments


def tensors(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Each tensor below `value` with its path, such as `args[0].hidden` or `out[1]`, in a fixed order.

    Told by the type alone: `isinstance` asks a value for its class, which may run code of the workload.
    """
    cls: type = type(value)
    if issubclass(cls, torch.Tensor):
        yield path, value
    elif depth >= MAX_DEPTH or value is None or issubclass(cls, _SINGLE):
        return
    elif issubclass(cls, Mapping):
        for key, item in _items(value, cls):
            yield from tensors(item, f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]", depth + 1)
    elif issubclass(cls, tuple) and isinstance(fields := vars(cls).get("_fields"), tuple):
        for name, item in zip(fields, value, strict=True):
            yield from tensors(item, f"{path}.{name}", depth + 1)
    elif issubclass(cls, (list, tuple)):
        for index, item in enumerate(value):
            yield from tensors(item, f"{path}[{index}]", depth + 1)
    elif not issubclass(cls, type) and dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            yield from tensors(_field(value, cls, field.name), f"{path}.{field.name}", depth + 1)


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
