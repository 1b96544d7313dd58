"""Meshes of ranks that this process belongs to: torch's `DeviceMesh`es and Megatron's groups (CA-3)."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from paritrace.capture.pytorch.groups import Groups, num_registered, registered
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Mesh

_MEGATRON = "megatron.core.parallel_state"
# Megatron's dimensions with the words in the names of their getters: those that make up the world, outermost first,
# and beside them the experts', which lie across data parallelism and are a mesh of their own.
_MEGATRON_MESHES = (
    (
        ("pp", "pipeline_model_parallel"),
        ("dp", "data_parallel"),
        ("cp", "context_parallel"),
        ("tp", "tensor_model_parallel"),
    ),
    (("ep", "expert_model_parallel"),),
)
_Facts = tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...], str, tuple[int, ...]]


class Meshes:
    """Ids of meshes; equal ones are one definition, and none is kept alive."""

    def __init__(self, emit: Callable[[Definition], None], groups: Groups, *, new_id: Callable[[], int]) -> None:
        self._emit = emit
        self._groups = groups
        self._new_id = new_id
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._ids: dict[_Facts, int] = {}
        self._num_groups = 0

    def of(self, mesh: Any) -> int:
        """The id of a `DeviceMesh`. Its dimensions without a name are called `dim0`, `dim1` …"""
        found = self._known.get(id(mesh))
        if found is not None and found[0]() is mesh:
            return found[1]
        shape = tuple(int(size) for size in mesh.shape)
        names = tuple(mesh.mesh_dim_names or (f"dim{axis}" for axis in range(len(shape))))
        coordinate = tuple(int(place) for place in mesh.get_coordinate() or ())
        groups = tuple(self._groups.of(_group(mesh, axis)) for axis in range(len(shape)))
        made = self._define((names, shape, coordinate, "device_mesh", groups))
        self._known[id(mesh)] = (weakref.ref(mesh), made)
        return made

    def look(self) -> None:
        """Define what there is by now: every mesh of this process, and Megatron's.

        Torch has no list of meshes, and one that serves only for its groups shows in no tensor. Making a mesh makes
        groups, so the objects of the interpreter are gone through only after groups were made.
        """
        number = num_registered()
        if number == self._num_groups:
            return
        self._num_groups = number
        self._groups.note()
        for mesh in _device_meshes():
            self.of(mesh)
        for facts in _megatron(self._groups):
            self._define(facts)

    def _define(self, facts: _Facts) -> int:
        found = self._ids.get(facts)
        if found is not None:
            return found
        made = self._ids[facts] = self._new_id()
        self._emit(Mesh(made, *facts))
        return made


def _device_meshes() -> list[Any]:
    """This rank's meshes that are no slices of others, in the order in which their groups were made.

    One whose groups were destroyed since is none any more, though something may still hold it; torch finds groups by
    names that are used again, so their sizes have to fit as well.
    """
    module = sys.modules.get("torch.distributed.device_mesh")
    cls = None if module is None else vars(module).get("DeviceMesh")  # absent in a torch without distributed
    if cls is None:
        return []
    places = {group: place for place, group in enumerate(registered())}
    found: list[tuple[list[int], Any]] = []
    for thing in gc.get_objects():
        if type(thing) is cls and vars(thing).get("_root_mesh") is None:
            groups = [_group(thing, axis) for axis in range(len(thing.shape))]
            if all(group in places for group in groups) and [group.size() for group in groups] == list(thing.shape):
                found.append(([places[group] for group in groups], thing))
    return [mesh for _, mesh in sorted(found, key=lambda item: item[0])]


def _group(mesh: Any, axis: int) -> Any:
    try:
        return mesh.get_group(axis)
    except (RuntimeError, AssertionError, IndexError, AttributeError):  # a mesh without groups, or not of this rank
        return None


def _megatron(groups: Groups) -> Iterator[_Facts]:
    """Megatron's own view, by its getters; a dimension that its version does not have is left out."""
    state = sys.modules.get(_MEGATRON)
    if state is None:
        return
    for dimensions in _MEGATRON_MESHES:
        found: list[tuple[str, int, int, int]] = []
        for dimension, words in dimensions:
            size, place = _asked(state, f"get_{words}_world_size"), _asked(state, f"get_{words}_rank")
            if isinstance(size, int) and isinstance(place, int) and size > 0:  # 0: its groups are not made yet
                found.append((dimension, size, place, groups.of(_asked(state, f"get_{words}_group"))))
        if found:
            names, sizes, places, ids = zip(*found, strict=True)
            yield names, sizes, places, "megatron", ids


def _asked(state: Any, getter: str) -> Any:
    """What a getter returns; None where this version has none, or where it objects that no groups are made."""
    function = vars(state).get(getter)
    try:
        return None if function is None else function()
    except Exception:  # noqa: BLE001  somebody else's function, called for looking only
        return None
