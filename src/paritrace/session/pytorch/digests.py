"""SHA-256 of a resident state, bit by bit and in the order of its names (SE-8, F-08)."""

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def digest_of_state(state: Mapping[str, Any], /) -> str:
    """Return the SHA-256 of names, shapes, dtypes and bytes of a state dictionary, nested as it is.

    Tensors are copied to the host one after the other. A value that is no tensor, mapping, list,
    number, text, bool or None raises TypeError: a digest that leaves something out would call unlike states alike.
    """
    found = hashlib.sha256()
    _take(found, "", state)
    return found.hexdigest()


def _take(found: Any, name: str, value: object) -> None:
    match value:
        case Tensor():
            copied = value.detach().to("cpu", copy=True)  # NumPy on the live storage would fix its size for good (N-03)
            flat = copied.contiguous().reshape(-1).view(torch.uint8)
            found.update(f"{name}\0tensor {tuple(value.shape)} {value.dtype}\0".encode())
            found.update(flat.numpy().tobytes())
        case Mapping():
            found.update(f"{name}\0mapping {len(value)}\0".encode())
            for key in sorted(value, key=str):
                _take(found, f"{name}.{key}", value[key])
        case list() | tuple():
            found.update(f"{name}\0list {len(value)}\0".encode())
            for number, one in enumerate(value):
                _take(found, f"{name}.{number}", one)
        case bool() | int() | float() | str() | None:
            found.update(f"{name}\0{type(value).__name__} {value!r}\0".encode())
        case _:
            raise TypeError(f"{name.lstrip('.')} is of type {type(value).__name__}, of which there is no digest")
