"""Replays module calls inside a re-run of the program that holds them, and then ends that program (CP-26)."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.nn.modules import module as torch_module

from paritrace.capture.pytorch.replay_answer import answer, not_reached, short, write_answer
from paritrace.evidence.replays import ReplayRequest, ReplayTask

MOST_SEEN = 12  # names of modules in the answer to a task whose module never came
PATIENCE_STEPS = 1  # after the last step that a task waits for: a module that is not called in it is not called


class Observed(Protocol):
    """What a capture knows of the program that runs."""

    def name_of(self, module: torch.nn.Module) -> str | None: ...
    def set_quiet(self, quiet: bool) -> None: ...
    @property
    def step(self) -> int: ...


class Replayer:
    """Waits for the calls of a request's tasks. `done` is called once, after the last, and does not come back."""

    def __init__(self, request: ReplayRequest, *, rank: int, observed: Observed, done: Callable[[], None]) -> None:
        self._request = request
        self._observed = observed
        self._done = done
        self._thread = threading.get_ident()
        self._waiting = [task for task in request.tasks if task.rank == rank]
        self._until = max([request.until_step, *(_last_step(task) for task in self._waiting)])
        self._numbers: Counter[tuple[int, str]] = Counter()
        self._seen: dict[str, None] = {}
        self._busy = False

    def install(self) -> None:
        """Look at every module call from now on."""
        torch_module.register_module_forward_pre_hook(self._entering)

    def ends(self, why: str) -> None:
        """Answer what still waits: its call did not come."""
        seen = ", ".join(list(self._seen)[:MOST_SEEN]) or "none"
        for task in self._waiting:
            said = f"{task.module or 'the root module'} was not called {why}; modules that were: {seen}"
            write_answer(Path(self._request.output), not_reached(task, said), {})
        self._waiting = []

    def _entering(self, module: torch.nn.Module, args: Any) -> None:
        if self._busy or threading.get_ident() != self._thread or torch.compiler.is_compiling():
            return
        step = self._observed.step
        if step > self._until:
            self.ends(f"until step {self._until} ended")
            self._done()
        name = self._observed.name_of(module)
        if name is None:
            return
        self._seen.setdefault(name)
        number = self._numbers[step, name]
        self._numbers[step, name] += 1
        for task in [task for task in self._waiting if task.module == name and _is_due(task, step, number)]:
            self._replay(module, task, args=args, kwargs=_keyword_arguments(sys._getframe(1)))
        if self._request.tasks and not self._waiting:
            self._done()

    def _replay(self, module: torch.nn.Module, task: ReplayTask, *, args: Any, kwargs: dict[str, Any]) -> None:
        self._busy = True
        self._observed.set_quiet(True)
        try:
            found, pieces = answer(module, task, self._request, args=args, kwargs=kwargs)
            write_answer(Path(self._request.output), found, pieces)
        except Exception as error:  # noqa: BLE001  a fault of ours is the answer, and no crash of the workload (P6)
            write_answer(Path(self._request.output), not_reached(task, f"a fault of the replay: {short(error)}"), {})
        finally:
            self._observed.set_quiet(False)
            self._busy = False
        self._waiting.remove(task)


def _last_step(task: ReplayTask) -> int:
    return PATIENCE_STEPS + (task.occasion[0] if task.occasion else 0)


def _is_due(task: ReplayTask, step: int, number: int) -> bool:
    return task.occasion is None or task.occasion == (step, number)


def _keyword_arguments(frame: Any) -> dict[str, Any]:
    """Keyword arguments of the call: torch hands global hooks positional ones only."""
    found = frame.f_locals.get("kwargs")
    return found if isinstance(found, dict) else {}
