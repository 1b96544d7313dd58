"""Tensors inside nested arguments and results, with their path (CA-4: slots are flattened by pytree path)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch

MAX_DEPTH = 16  # deeper nests are data structures of their own, not arguments


def tensors(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Each tensor below `value` with its path, such as `args[0].hidden` or `out[1]`, in a fixed order."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif depth >= MAX_DEPTH or value is None or isinstance(value, (int, float, str, bytes, torch.nn.Module)):
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tensors(item, f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, tuple) and isinstance(fields := vars(type(value)).get("_fields"), tuple):
        for name, item in zip(fields, value, strict=True):
            yield from tensors(item, f"{path}.{name}", depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from tensors(item, f"{path}[{index}]", depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors(vars(value).get(field.name), f"{path}.{field.name}", depth + 1)
