"""Names of modules, parameters and buffers, by the root modules whose forward was seen.

Names are those of the model as its author wrote it: what a wrapper of torch's puts in between is left out, so that a
model has the same names wrapped and bare, sharded and whole, checkpointed or not, and such runs pair.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch

from paritrace.capture.pytorch.wrappers import Spelling, gathered_parameters, original_class, unwrapped

UNNAMED = "?"


class Names:
    """Qualified names; the first root module with parameters has bare names, others a prefix of their class."""

    def __init__(self) -> None:
        self._modules: dict[int, tuple[weakref.ref[torch.nn.Module], str]] = {}
        self._parameters: dict[int, tuple[weakref.ref[torch.Tensor], str]] = {}
        self._roots: list[tuple[weakref.ref[torch.nn.Module], Spelling]] = []
        self._prefixes: dict[str, int] = {}
        self._bare_given = False
        self._gathered_named = False  # of this step's parameters that were gathered from shards

    def of_module(self, module: torch.nn.Module) -> str | None:
        """The qualified name of a module that belongs to a known root; the root itself is ""."""
        found = self._modules.get(id(module))
        return found[1] if found is not None and found[0]() is module else None

    def of_parameter(self, parameter: torch.Tensor) -> str:
        """The qualified name of a parameter of a known root, gathered or in shards, else `?`."""
        found = self._parameters.get(id(parameter))
        if found is not None and found[0]() is parameter:
            return found[1]
        if not self._gathered_named:
            self._gathered_named = True
            self._name_gathered()
            return self.of_parameter(parameter)
        return UNNAMED

    def register_root(self, module: torch.nn.Module) -> str:
        """Name a module that was called from outside any known one, and everything in it; returns its own name."""
        spelling = Spelling(self._prefix(module), module)
        for name, inner in module.named_modules():
            if self.of_module(inner) is None:
                self._modules[id(inner)] = (weakref.ref(inner), spelling.module(name))
        self._roots.append((weakref.ref(module), spelling))
        spelling.look(module)
        for name, parameter in module.named_parameters(remove_duplicate=False):  # a root that comes in mid-step
            self._parameters.setdefault(id(parameter), (weakref.ref(parameter), spelling.member(name)))
        return spelling.module("")

    def refresh(self) -> None:
        """Take the parameters anew: modules may have been wrapped, tied or extended since."""
        self._parameters.clear()
        self._gathered_named = False
        for module, spelling in self._alive():
            spelling.look(module)
        for name, parameter in self.parameters():
            self._parameters.setdefault(id(parameter), (weakref.ref(parameter), name))

    def parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Named parameters of all known roots, tied ones under each of their names."""
        for module, spelling in self._alive():
            for name, parameter in module.named_parameters(remove_duplicate=False):
                yield spelling.member(name), parameter

    def buffers(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Named buffers of all known roots."""
        for module, spelling in self._alive():
            for name, buffer in module.named_buffers(remove_duplicate=False):
                yield spelling.member(name), buffer

    def modules(self) -> Iterator[tuple[str, torch.nn.Module, Spelling]]:
        """All modules of all known roots under torch's own names, with how names of that root are spelt here."""
        for module, spelling in self._alive():
            for name, inner in module.named_modules():
                yield name, inner, spelling

    @property
    def flat_shards(self) -> bool:
        """Whether parameters of a known root are flat shards of the first FSDP: parts that do not say of what."""
        return any(spelling.flat_shards for _, spelling in self._alive())

    def all_modules(self) -> Iterator[tuple[str, torch.nn.Module]]:
        """Every module of all known roots, with its name."""
        for module, spelling in self._alive():
            for name, inner in module.named_modules():
                yield spelling.module(name), inner

    def extra_state(self) -> tuple[str, ...]:
        """Modules that keep a state of their own which is not read: calling for it could have effects."""
        plain = torch.nn.Module.get_extra_state
        return tuple(
            f"extra_state:{spelling.member(name)}"
            for module, spelling in self._alive()
            for name, inner in module.named_modules()
            if type(inner).get_extra_state is not plain
        )

    def _name_gathered(self) -> None:
        for _, module, _ in self.modules():
            for owner, name, parameter in gathered_parameters(module):
                prefix = self.of_module(owner)
                if prefix is not None:
                    self._parameters[id(parameter)] = (weakref.ref(parameter), f"{prefix}.{name}" if prefix else name)

    def _alive(self) -> Iterator[tuple[torch.nn.Module, Spelling]]:
        for reference, spelling in self._roots:
            module = reference()
            if module is not None:
                yield module, spelling

    def _prefix(self, module: torch.nn.Module) -> str:
        has_parameters = next(iter(module.parameters()), None) is not None
        if has_parameters and not self._bare_given:
            self._bare_given = True
            return ""
        name = original_class(unwrapped(module)).__name__
        number = self._prefixes[name] = self._prefixes.get(name, 0) + 1
        return f"{name}." if number == 1 else f"{name}#{number}."
