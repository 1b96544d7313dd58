"""Wrappers that torch puts around modules or into their classes: what a module is without them."""

from __future__ import annotations

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
    while cls.__module__.startswith(_TORCH) and len(cls.__bases__) == 2:
        mixin, original = cls.__bases__
        if not mixin.__module__.startswith(_TORCH) or not issubclass(original, torch.nn.Module):
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


class Spelling:
    """Names inside of one root module, without its wrappers' and with the root's own prefix (empty, or `Class.`)."""

    def __init__(self, prefix: str, root: torch.nn.Module) -> None:
        self._prefix = prefix
        self._wrapped: tuple[str, ...] = ()
        self.look(root)

    def look(self, root: torch.nn.Module) -> None:
        """Find the wrappers whose modules have an ordinary name: a model may well have a `module` of its own."""
        self._wrapped = tuple(
            f"{name}.module" if name else "module"
            for name, inner in root.named_modules()
            if isinstance(inner, _REPLICATING)
        )

    def module(self, name: str) -> str:
        """The name of a module; the root's is its prefix without the point."""
        return self.member(name).rstrip(".")

    def member(self, name: str) -> str:
        """The name of a parameter, a buffer or a module inside of the root."""
        for path in reversed(self._wrapped):  # the innermost first, so that the outer ones still fit
            if name == path or name.startswith(f"{path}."):
                name = path.removesuffix("module") + name[len(path) + 1 :]
        kept = [segment for segment in name.split(".") if segment not in _SEGMENTS]
        return self._prefix + ".".join(kept).rstrip(".")
