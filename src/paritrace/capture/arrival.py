"""Acting when the workload imports a module, and not before: what it sets ahead of its import must count (P6).

Importing torch early would fix the number of threads, the visible devices and the CPU capability before the script has
had its say.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Then = Callable[[ModuleType], None]


class WhenImported(importlib.abc.MetaPathFinder):
    """Calls back once, when a module is or has been imported. Finds nothing itself."""

    def __init__(self, name: str, then: Then) -> None:
        self._name = name
        self._then = then

    def install(self) -> None:
        """Call back now if the module is loaded, else as soon as it is."""
        module = sys.modules.get(self._name)
        if module is not None:
            self._then(module)
        else:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Let the other finders find it, and stand behind its loader."""
        if fullname != self._name:
            return None
        self.remove()
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Behind(spec.loader, self._then)
        return spec


class _Behind(importlib.abc.Loader):
    """A loader that calls back after the real one has executed the module, and then leaves no trace."""

    def __init__(self, loader: Any, then: Then) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        spec.loader = self._loader
        created: ModuleType | None = self._loader.create_module(spec)
        spec.loader = self
        return created

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then(module)
