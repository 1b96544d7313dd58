"""`torch.export` traces a module by its compiler, which would take hooks of ours for the model's own (P6)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

from paritrace.capture.arrival import WhenImported

MODULE = "torch.export._trace"
STRICT = "_strict_export"  # traces by the compiler; the other way runs the module, as anybody does


class StrictExports:
    """Has strict exports run as without us, as soon as torch's export is imported."""

    def __init__(self, unobserved: Callable[[], AbstractContextManager[None]]) -> None:
        self._unobserved = unobserved
        self._original: Any = None
        self._arrival = WhenImported(MODULE, self._patch)

    def install(self) -> None:
        self._arrival.install()

    def remove(self) -> None:
        self._arrival.remove()
        if self._original is not None:
            vars(sys.modules[MODULE])[STRICT] = self._original
            self._original = None

    def _patch(self, module: ModuleType) -> None:
        original = vars(module).get(STRICT)
        if original is None:
            return
        self._original = original
        unobserved = self._unobserved

        @functools.wraps(original)
        def export(*args: Any, **kwargs: Any) -> Any:
            with unobserved():
                return original(*args, **kwargs)

        vars(module)[STRICT] = export
