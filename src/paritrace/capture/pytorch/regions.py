"""Compiled regions: each run of an Inductor graph is one call, observed at its border and never inside (CA-15)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from paritrace.capture.arrival import WhenImported

MODULE = "torch._inductor.output_code"
GRAPH = "CompiledFxGraph"

Around = Callable[[Callable[[Any, Any], Any], Any, Any], Any]
"""`around(original, graph, inputs)` runs `original(graph, inputs)` and returns its result."""


class CompiledRegions:
    """Stands before the call of a compiled graph, as soon as torch's compiler is imported."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._original: Any = None
        self._arrival = WhenImported(MODULE, self._patch)

    def install(self) -> None:
        self._arrival.install()

    def remove(self) -> None:
        self._arrival.remove()
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
