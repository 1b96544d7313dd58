"""Kinds of tensors: interned definitions beside the geometry by which their bytes are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from paritrace.capture.pytorch.internals import is_functorch_wrapped, without_torch_function
from paritrace.capture.pytorch.memory import Geometry, geometry_of, is_plain
from paritrace.evidence import calls
from paritrace.evidence.definition import Definition


@dataclass(frozen=True, slots=True)
class KnownKind:
    """One kind: its id in the journal and how to read it.

    `signature` and `view` are precomputed for the hot path; `view` is equal for the same view of a storage inside and
    outside autograd, where the kinds differ by `requires_grad`.
    """

    id: int
    geometry: Geometry
    signature: tuple[object, ...]
    readable: bool
    view: tuple[object, ...]


class Kinds:
    """Interns the kinds of one session."""

    def __init__(self, emit: Callable[[Definition], None]) -> None:
        self._emit = emit
        self._known: dict[tuple[Any, ...], KnownKind] = {}
        self._rng = -1
        self._next = 0

    def of(self, tensor: torch.Tensor) -> KnownKind:
        """The kind of a live tensor. Never raises for exotic tensors: their geometry says why it has no bytes."""
        if tensor.layout is torch.strided and is_plain(tensor) and not tensor.is_nested:
            key: tuple[Any, ...] = (
                tensor.dtype,
                tensor.shape,
                tensor.stride(),
                tensor.is_cpu or str(tensor.device),
                tensor.requires_grad,
                tensor.is_conj() or tensor.is_neg(),
                type(tensor),
                is_functorch_wrapped(tensor),
            )
        else:
            with without_torch_function():
                key = (tensor.dtype, _shape_text(tensor), str(tensor.layout), str(tensor.device), type(tensor))
        found = self._known.get(key)
        if found is None:
            with without_torch_function():
                found = self._known[key] = self._define(tensor)
        return found

    def rng(self) -> int:
        """The kind of a generator's state."""
        if self._rng < 0:
            self._rng = self._take_id()
            self._emit(calls.Kind(self._rng, "rng", (), (), "state", "cpu", False, 0, 0, "Generator"))
        return self._rng

    def _define(self, tensor: torch.Tensor) -> KnownKind:
        geometry = geometry_of(tensor)
        made = self._take_id()
        self._emit(
            calls.Kind(
                made,
                geometry.dtype,
                geometry.shape,
                geometry.logical_strides,
                "nested" if tensor.is_nested else str(tensor.layout).partition(".")[2],
                str(tensor.device),
                tensor.requires_grad,
                geometry.num_elements,
                geometry.num_elements * geometry.itemsize,
                type(tensor).__name__,
            )
        )
        view = (geometry.dtype, geometry.shape, geometry.logical_strides)
        return KnownKind(made, geometry, geometry.signature, geometry.gap is None, view)

    def _take_id(self) -> int:
        made = self._next
        self._next += 1
        return made


def _shape_text(tensor: torch.Tensor) -> str:
    return "nested" if tensor.is_nested else str(tuple(tensor.shape))
