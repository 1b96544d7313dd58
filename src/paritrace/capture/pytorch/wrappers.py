"""Wrappers that torch puts around modules or into their classes: what a module is without them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch

_TORCH = "torch.distributed."
_REPLICATING = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)
# What checkpointing and the first FSDP call the module they wrap; no model has such names of its own.
_SEGMENTS = frozenset({"_checkpoint_wrapped_module", "_fsdp_wrapped_module"})


def original_class(module: torch.nn.Module) -> type:
    """The class that the model's author wrote.

    Torch's sharding and replication of modules in place (`fully_shard`, `replicate`) set `__class__` to a class made on
    the spot, `FSDPLinear`, of its own mixin and the original; a sharded and a whole model would never pair by it.
    """
    cls: type = type(module)
    while _is_of_torch(cls) and len(cls.__bases__) == 2:
        mixin, original = cls.__bases__
        if not _is_of_torch(mixin) or not issubclass(original, torch.nn.Module):
            break
        cls = original
    return cls


def class_name(module: torch.nn.Module) -> str:
    """The qualified name of a module's original class."""
    cls = original_class(module)
    return f"{cls.__module__}.{cls.__qualname__}"


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """The module inside of a wrapper for data parallelism; any other is itself."""
    while isinstance(module, _REPLICATING):
        module = module.module
    return module


def gathered_parameters(module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, str, torch.Tensor]]:
    """The whole parameters that `fully_shard` puts in the place of its shards during forward and backward.

    Owner, name in it, tensor; those that were gathered once. Gradients are accumulated into them, and
    `named_parameters` shows them only while they are in place. Nothing for other modules.
    """
    get_state: Any = getattr(module, "_get_fsdp_state", None) if _is_of_torch(type(module)) else None
    if get_state is None:
        return
    state = get_state()
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:  # earlier versions have one group or none
        groups = (getattr(state, "_fsdp_param_group", None),)
    for group in groups:
        for parameter in getattr(group, "fsdp_params", ()):
            tensor = getattr(parameter, "_unsharded_param", None)
            if isinstance(tensor, torch.Tensor):
                place = parameter._module_info
                yield place.module, place.param_name, tensor


def sharding_of(module: torch.nn.Module) -> str:
    """What cuts the parameters of a module, or of one inside it, into shards that it keeps by itself; "" where nothing
    does: `fully_shard`, or the first FSDP by its class."""
    package = sys.modules.get("torch.distributed.fsdp")
    if package is None:
        return ""
    kinds = {"FSDPModule": "fully_shard", "FullyShardedDataParallel": "FullyShardedDataParallel"}
    known = [(vars(package).get(name), told) for name, told in kinds.items()]
    inside = list(module.modules())
    return next((told for cls, told in known if cls and any(isinstance(one, cls) for one in inside)), "")


def _is_flat_sharding(module: torch.nn.Module) -> bool:
    package = sys.modules.get("torch.distributed.fsdp")
    cls = None if package is None else vars(package).get("FullyShardedDataParallel")
    return cls is not None and isinstance(module, cls)


def _is_of_torch(cls: type) -> bool:
    return cls.__module__.startswith(_TORCH)


class Spelling:
    """Names inside of one root module, without its wrappers' and with the root's own prefix (empty, or `Class.`)."""

    def __init__(self, prefix: str, root: torch.nn.Module) -> None:
        self._prefix = prefix
        self._wrapped: tuple[str, ...] = ()
        self.flat_shards = False
        self._spelt: dict[str, str] = {}
        self.look(root)

    def look(self, root: torch.nn.Module) -> None:
        """Find the wrappers whose modules have an ordinary name: a model may well have a `module` of its own.

        And whether the first FSDP cut the parameters into flat shards, which show nowhere that they are parts.
        """
        wrapped: list[str] = []
        self.flat_shards = False
        for name, inner in root.named_modules():
            if isinstance(inner, _REPLICATING):
                wrapped.append(f"{name}.module" if name else "module")
            self.flat_shards = self.flat_shards or _is_flat_sharding(inner)
        if wrapped != list(self._wrapped):
            self._wrapped = tuple(wrapped)
            self._spelt.clear()

    def module(self, name: str) -> str:
        """The name of a module; the root's is its prefix without the point."""
        return self.member(name).rstrip(".")

    def member(self, name: str) -> str:
        """The name of a parameter, a buffer or a module inside of the root."""
        found = self._spelt.get(name)
        if found is None:
            found = self._spelt[name] = self._spell(name)
        return found

    def _spell(self, name: str) -> str:
        for path in reversed(self._wrapped):  # the innermost first, so that the outer ones still fit
            if name == path or name.startswith(f"{path}."):
                name = path.removesuffix("module") + name[len(path) + 1 :]
        kept = [segment for segment in name.split(".") if segment not in _SEGMENTS]
        return self._prefix + ".".join(kept).rstrip(".")
