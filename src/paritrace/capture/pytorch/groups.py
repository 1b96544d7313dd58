"""Process groups of this rank: one register for all that name a group, each defined once (CA-3, CA-31)."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Group

NO_GROUP = -1
WORLD = "world"
UNREGISTERED = "unregistered"  # made by a back end's own class: torch does not know which global ranks it has
_MESH = "mesh_"  # torch describes the group of a mesh's dimension so: `mesh_dp`, and `mesh_dim_0` without a name
_UNNAMED = re.compile(r"dim_(\d+)")
_WITHOUT_NAME = "mesh_default"  # a mesh over the whole world, whose dimension torch does not name
_Identity = tuple[str, tuple[int, ...], str]


class Groups:
    """Ids of process groups, by what torch's own register says of them; no group is kept alive.

    A key is spelt alike on all members and in every run: `world` for the default group, the dimension's name for a
    group that was made for a mesh, else its global ranks (`ranks 0,2`). A further group of one key gets `#2`, in the
    order in which this rank's groups were made, whichever of them is asked for first. The default group is `world` also
    where it serves as a mesh's only dimension: `Mesh.groups` says that it does.
    """

    def __init__(self, emit: Callable[[Definition], None]) -> None:
        self._emit = emit
        self._ids: dict[_Identity, int] = {}
        self._keys: dict[_Identity, str] = {}
        self._used: dict[str, int] = {}
        self._by_id: dict[int, Group] = {}
        self._objects: dict[int, tuple[weakref.ref[Any], int]] = {}  # asked for with every collective

    def of(self, group: object) -> int:
        """The id of a group given as torch's `ProcessGroup`, as the dispatcher's boxed form of one, or by torch's name.

        `NO_GROUP` for anything else, for a name that torch does not know, and where nothing is distributed.
        """
        found = _process_group(group)
        if found is None:
            return NO_GROUP
        known = self._objects.get(id(found))
        if known is not None and known[0]() is found:
            return known[1]
        identity = _identity(found)
        made = self._ids.get(identity)
        if made is None:
            self.note()
            made = self._ids[identity] = len(self._ids)
            key = self._keys.get(identity) or self._name(identity, UNREGISTERED)
            label, ranks, backend = identity
            self._by_id[made] = Group(made, key, ranks, backend, label)
            self._emit(self._by_id[made])
        self._objects[id(found)] = (weakref.ref(found), made)
        return made

    def __getitem__(self, group: int) -> Group:
        """The definition of an id that `of` gave."""
        return self._by_id[group]

    def note(self) -> None:
        """Name the groups made so far, in the order in which they were made; defines none of them."""
        for group in registered():
            identity = _identity(group)
            if identity not in self._keys:
                self._name(identity, _key(group, identity[1]))

    def _name(self, identity: _Identity, key: str) -> str:
        number = self._used[key] = self._used.get(key, 0) + 1
        named = self._keys[identity] = key if number == 1 else f"{key}#{number}"
        return named


def registered() -> Iterator[Any]:
    """This rank's process groups, in the order in which they were made."""
    world = _world()
    return iter(()) if world is None else iter(list(world.pg_map))


def num_registered() -> int:
    """How many process groups this rank is in; 0 where nothing is distributed."""
    world = _world()
    return 0 if world is None else len(world.pg_map)


def _world() -> Any:
    """Torch's register of groups; torch.distributed is not imported for asking."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    return None if module is None else vars(module)["_world"]


def _process_group(group: object) -> Any:
    """The `ProcessGroup` behind any spelling of it."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    cls = None if module is None else vars(module).get("ProcessGroup")  # absent in a torch without distributed
    if cls is None:
        return None
    if isinstance(group, cls):
        return group
    try:
        if isinstance(group, torch.ScriptObject):
            return cls.unbox(group)
        if isinstance(group, str):
            return vars(torch._C)["_distributed_c10d"]._resolve_process_group(group)
    except (RuntimeError, ValueError):  # another object of torch's, or a name of no group
        return None
    return None


def _identity(group: Any) -> _Identity:
    """Names are torch's counters, which begin anew after all groups were destroyed: ranks and back end tell further.

    What torch has not registered is one group for us: it need not have a name.
    """
    world = _world()
    ranks = world.pg_group_ranks.get(group)
    backend = world.pg_map.get(group)
    if ranks is None or backend is None:
        return "", (), ""
    return str(group.group_name), tuple(sorted(ranks, key=ranks.__getitem__)), str(backend[0])


def _key(group: Any, ranks: tuple[int, ...]) -> str:
    if group is _world().default_pg:
        return WORLD
    description = str(group.group_desc)
    if description.startswith(_MESH) and description != _WITHOUT_NAME:
        dimension = description.removeprefix(_MESH)
        unnamed = _UNNAMED.fullmatch(dimension)
        return dimension if unnamed is None else f"dim{unnamed[1]}"
    return "ranks " + ",".join(map(str, ranks))
