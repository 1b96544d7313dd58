"""Kinds of tensors: interned definitions beside the geometry by which their bytes are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch

from paritrace.capture.pytorch.groups import Groups
from paritrace.capture.pytorch.internals import is_functorch_wrapped, without_torch_function
from paritrace.capture.pytorch.memory import Geometry, geometry_of, is_plain
from paritrace.capture.pytorch.meshes import Meshes
from paritrace.capture.pytorch.parts import (
    Distribution,
    distribution_of,
    is_distributed,
    is_in_flight,
    mesh_of,
    part_of,
    placement_key,
)
from paritrace.evidence import calls
from paritrace.evidence.boxes import Box
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Placement
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.placements import box_samples

_IN_FLIGHT = Gap(CaptureGap.IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class KnownKind:
    """One kind: its id in the journal and how to read it: the bytes of `parts.part_of(tensor)`.

    `signature` and `view` are precomputed for the hot path; `view` is equal for the same view of a storage inside and
    outside autograd, where the kinds differ by `requires_grad`. `samples`: the logical indices to sample where they are
    not those of any tensor of this size, because the tensor is a part of a larger one (CA-28). `whole`: the bytes are
    all of the tensor's value.
    """

    id: int
    geometry: Geometry
    signature: tuple[object, ...]
    readable: bool
    view: tuple[object, ...]
    samples: tuple[int, ...] | None = None
    whole: bool = True


class Kinds:
    """Interns the kinds of one session."""

    def __init__(self, emit: Callable[[Definition], None], meshes: Meshes | None = None) -> None:
        self._emit = emit
        self._meshes = meshes or Meshes(emit, Groups(emit), new_id=count().__next__)
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
                mesh = self._meshes.of(mesh_of(tensor)) if is_distributed(tensor) else -1
                key = (*_wrapper_key(tensor), mesh)
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
        part = part_of(tensor)
        geometry = geometry_of(part)
        if is_in_flight(tensor):
            geometry = replace(geometry, gap=_IN_FLIGHT)
        distribution = distribution_of(tensor) if is_distributed(tensor) else None
        mesh = -1 if distribution is None else self._meshes.of(distribution.mesh)  # defined before what names it
        made = self._take_id()
        self._emit(
            calls.Kind(
                made,
                geometry.dtype,
                geometry.shape,
                geometry.logical_strides,
                "nested" if part.is_nested else str(part.layout).partition(".")[2],
                str(part.device),
                tensor.requires_grad,
                geometry.num_elements,
                geometry.num_elements * geometry.itemsize,
                type(tensor).__name__,
            )
        )
        view = (geometry.dtype, geometry.shape, geometry.logical_strides)
        known = KnownKind(made, geometry, geometry.signature, geometry.gap is None, view)
        return known if distribution is None else self._place(known, distribution, mesh)

    def _place(self, kind: KnownKind, placed: Distribution, mesh: int) -> KnownKind:
        self._emit(Placement(kind.id, mesh, placed.placements, placed.shape, placed.offset or ()))
        samples = None
        if placed.offset is not None and kind.geometry.shape != placed.shape:
            samples = box_samples(Box(placed.offset, kind.geometry.shape), placed.shape)[1]
        return replace(kind, samples=samples, whole=placed.whole)

    def _take_id(self) -> int:
        made = self._next
        self._next += 1
        return made


def _wrapper_key(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What tells kinds apart beyond plain strided tensors; what wraps another one counts as that one, placed."""
    part = part_of(tensor)
    strided = part.layout is torch.strided and is_plain(part) and not part.is_nested
    return (
        type(tensor),
        type(part),
        part.dtype,
        "nested" if part.is_nested else tuple(part.shape),
        part.stride() if strided else str(part.layout),
        str(part.device),
        part.is_conj() or part.is_neg() if strided else False,
        tensor.requires_grad if part is not tensor else False,
        is_in_flight(tensor),
        placement_key(tensor) if is_distributed(tensor) else (),
    )
