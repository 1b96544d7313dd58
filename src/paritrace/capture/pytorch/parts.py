"""Tensors that stand for others: the part of a distributed tensor that this rank holds, and how it is placed.

A `DTensor` wraps the local tensor, an `AsyncCollectiveTensor` the result of a collective that may not be there yet.
Both are opened by their fields alone: no operator is dispatched and nothing is waited for (CA-31, CA-33, CA-34).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

from paritrace.evidence.placements import Cut, extent, held_by, offset

# Classes of torch that are not imported for asking: where they are defined, and what they hold.
_DISTRIBUTED = ("torch.distributed.tensor", "DTensor")
_PENDING = ("torch.distributed._functional_collectives", "AsyncCollectiveTensor")


@dataclass(frozen=True, slots=True)
class Distribution:
    """How a distributed tensor lies on its mesh.

    `placements` are spelt as in the journal; `offset` is where the local part begins in the whole of `shape`, None
    where it is not one box or is not what the placements say. `whole`: the local part has all of the tensor's value.
    """

    mesh: Any
    placements: tuple[str, ...]
    shape: tuple[int, ...]
    offset: tuple[int, ...] | None
    whole: bool


def part_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor whose bytes stand for this one: itself, or what torch's wrapper around it holds on this rank."""
    if is_distributed(tensor):
        held: Any = tensor
        return part_of(held._local_tensor)
    if _is_a(tensor, _PENDING):
        pending: Any = tensor
        return part_of(pending.elem)
    return tensor


def value_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The local tensor that holds all of this tensor's value; None where other ranks hold some, or it is in flight."""
    if is_in_flight(tensor) or (is_distributed(tensor) and not distribution_of(tensor).whole):
        return None
    return part_of(tensor)


def is_distributed(tensor: torch.Tensor) -> bool:
    """Whether this is a `DTensor`."""
    return _is_a(tensor, _DISTRIBUTED)


def is_in_flight(tensor: torch.Tensor) -> bool:
    """Whether its bytes come from a collective that nobody has waited for through this tensor."""
    if is_distributed(tensor):
        held: Any = tensor
        return is_in_flight(held._local_tensor)
    if _is_a(tensor, _PENDING):
        pending: Any = tensor
        return not pending.completed or is_in_flight(pending.elem)
    return False


def mesh_of(tensor: torch.Tensor) -> Any:
    """The `DeviceMesh` of a `DTensor`."""
    held: Any = tensor
    return held._spec.mesh


def placement_key(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What tells the placements of two `DTensor`s on one mesh apart; keeps nothing of theirs alive."""
    held: Any = tensor
    return (tuple(_text(placement) for placement in held._spec.placements), tuple(tensor.shape))


def distribution_of(tensor: torch.Tensor) -> Distribution:
    """How a `DTensor` is distributed, by its own statement and torch's way of cutting."""
    held: Any = tensor
    spec = held._spec
    mesh, placements = spec.mesh, tuple(spec.placements)
    shape = tuple(int(size) for size in tensor.shape)
    local = tuple(int(size) for size in held._local_tensor.shape)
    sizes = tuple(int(size) for size in mesh.shape)
    cuts = _cuts(placements, sizes=sizes, coordinate=mesh.get_coordinate(), dims=len(shape))
    return Distribution(
        mesh=mesh,
        placements=tuple(_text(placement) for placement in placements),
        shape=shape,
        offset=None if cuts is None else _box(shape, local, cuts),
        whole=all(size == 1 or _is(placement, "Replicate") for placement, size in zip(placements, sizes, strict=True)),
    )


def _cuts(placements: tuple[Any, ...], *, sizes: tuple[int, ...], coordinate: Any, dims: int) -> tuple[Cut, ...] | None:
    """How the mesh cuts the tensor; None where it does in a way that is not known, or this rank is not in the mesh."""
    cuts: list[Cut] = []
    for axis, placement in enumerate(placements):
        if _is(placement, "Shard") or _is(placement, "_StridedShard"):
            if coordinate is None:
                return None
            strides = 1 if _is(placement, "Shard") else int(placement.split_factor)
            cuts.append(Cut(placement.dim % dims, sizes[axis], int(coordinate[axis]), strides))
        elif not _is(placement, "Replicate") and not _is(placement, "Partial"):
            return None
    return tuple(cuts)


def _box(shape: tuple[int, ...], local: tuple[int, ...], cuts: tuple[Cut, ...]) -> tuple[int, ...] | None:
    """Where the local part begins; None where it is no box, or of another shape: then it was cut by hand."""
    held = held_by(shape, cuts)
    return offset(shape, held) if extent(held) == local else None


def _text(placement: Any) -> str:
    """As torch abbreviates them; what torch gains later goes by the name of its class.

    A special kind of pending sum stays one, `P(_MaskPartial)`: its terms differ between ranks, and do not just add.
    """
    if _is(placement, "Shard"):
        return f"S({placement.dim})"
    if _is(placement, "_StridedShard"):
        return f"_S({placement.dim},{int(placement.split_factor)})"
    if _is(placement, "Replicate"):
        return "R"
    if _is(placement, "Partial"):
        return f"P({placement.reduce_op})"
    name = type(placement).__name__
    pending = any(base.__name__ == "Partial" for base in type(placement).__mro__)
    return f"P({name})" if pending else name


def _is(placement: Any, name: str) -> bool:
    """Exactly this class: subclasses mean something else, as a sum of masked rows does."""
    return type(placement).__name__ == name and type(placement).__module__.startswith("torch.")


def _is_a(tensor: torch.Tensor, named: tuple[str, str]) -> bool:
    cls = type(tensor)
    if cls is torch.Tensor or cls is torch.nn.Parameter:
        return False
    module = sys.modules.get(named[0])
    wanted = None if module is None else vars(module).get(named[1])
    return wanted is not None and issubclass(cls, wanted)
