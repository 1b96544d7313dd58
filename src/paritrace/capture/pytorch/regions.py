"""Compiled regions: each run of an Inductor graph is one call, observed at its border and never inside (CA-15)."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

MODULE = "torch._inductor.output_code"
GRAPH = "CompiledFxGraph"

Around = Callable[[Callable[[Any, Any], Any], Any, Any], Any]
"""`around(original, graph, inputs)` runs `original(graph, inputs)` and returns its result."""


class CompiledRegions:
    """Stands before the call of a compiled graph; waits for torch's compiler to be imported if it is not yet."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._original: Any = None
        self._finder: _WhenImported | None = None

    def install(self) -> None:
        module = sys.modules.get(MODULE)
        if module is not None:
            self._patch(module)
            return
        self._finder = _WhenImported(MODULE, self._patch)
        sys.meta_path.insert(0, self._finder)

    def remove(self) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        if self._original is not None:
            vars(sys.modules[MODULE])[GRAPH].__call__ = self._original
            self._original = None

    def _patch(self, module: ModuleType) -> None:
        graph = vars(module).get(GRAPH)
        if graph is None:
            return
        original = self._original = graph.__call__
        around = self._around

        def call(this: Any, inputs: Any) -> Any:
            return around(original, this, inputs)

        graph.__call__ = call


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls back when one module has been imported; finds nothing itself."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Then(spec.loader, self._then)
        return spec


class _Then(importlib.abc.Loader):
    """A loader that calls back after the real one has executed the module."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._then(module)
