"""Processes that the workload spawns are not observed: each is counted, by what it is for (CA-10).

Forked ones tell of themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from paritrace.capture.arrival import WhenImported

LOADER = "data loader worker"
PURPOSES = {"torch.multiprocessing.spawn": "torch.multiprocessing.spawn", "torch.utils.data._utils.worker": LOADER}
MODULES = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")


class SpawnedProcesses:
    """Stands before the launch of multiprocessing's processes, `torch.multiprocessing.spawn` among them."""

    def __init__(self, started: Callable[[str], None]) -> None:
        self._started = started
        self._originals: dict[str, Any] = {}
        self._arrivals = [WhenImported(name, self._patch) for name in MODULES]

    def install(self) -> None:
        for arrival in self._arrivals:
            arrival.install()

    def remove(self) -> None:
        for arrival in self._arrivals:
            arrival.remove()
        for name, original in self._originals.items():
            vars(sys.modules[name])["Popen"]._launch = original
        self._originals.clear()

    def _patch(self, module: ModuleType) -> None:
        launcher = vars(module).get("Popen")
        if launcher is None:
            return
        original = self._originals[module.__name__] = launcher._launch
        started = self._started

        def launch(this: Any, process: Any) -> Any:
            name = name_of(process)  # before it starts: then it forgets
            result = original(this, process)
            started(name)
            return result

        launcher._launch = launch


def name_of(process: Any) -> str:
    """What a process that is about to start is for, by the function that it runs; else its class."""
    module = getattr(getattr(process, "_target", None), "__module__", "")
    return PURPOSES.get(str(module), type(process).__name__)
