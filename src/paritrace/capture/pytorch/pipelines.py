"""Micro-batches of torch's pipeline schedules: a stage is told which one it computes, whatever the order (CA-3).

A schedule runs forwards of later micro-batches before backwards of earlier ones, so counting backwards says nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial, wraps
from types import ModuleType
from typing import Any

from paritrace.capture.arrival import WhenImported
from paritrace.capture.recorder import Recorder

# Module, class, methods; and the argument of each that is the index of the micro-batch.
STAGES = ("torch.distributed.pipelining.stage", "_PipelineStageBase")
SCHEDULES = ("torch.distributed.pipelining.schedules", "_PipelineSchedule")
INDEX = {
    "forward_one_chunk": "fwd_chunk_id",
    "backward_one_chunk": "bwd_chunk_id",
    "backward_weight_one_chunk": "bwd_chunk_id",
    "_maybe_compute_loss": "mb_index",
}


class PipelineObserver:
    """Names the micro-batch while a stage, or the loss behind the last one, is computed."""

    def __init__(self, recorder: Recorder, *, here: Callable[[], bool]) -> None:
        self._recorder = recorder
        self._here = here
        self._originals: list[tuple[type, str, Any]] = []
        self._arrivals = [WhenImported(module, partial(self._patch, name=cls)) for module, cls in (STAGES, SCHEDULES)]

    def install(self) -> None:
        for arrival in self._arrivals:
            arrival.install()

    def remove(self) -> None:
        for arrival in self._arrivals:
            arrival.remove()
        for cls, name, original in self._originals:
            setattr(cls, name, original)
        self._originals.clear()

    def _patch(self, module: ModuleType, *, name: str) -> None:
        cls = vars(module).get(name)
        if not isinstance(cls, type):
            return
        for method, index in INDEX.items():
            original = vars(cls).get(method)
            place = _place(original, index)
            if place >= 0:
                self._originals.append((cls, method, original))
                setattr(cls, method, self._around(original, index, place))

    def _around(self, original: Any, index: str, place: int) -> Any:
        @wraps(original)
        def computed(*args: Any, **kwargs: Any) -> Any:
            number = args[place] if place < len(args) else kwargs.get(index)
            if not isinstance(number, int) or not self._here():
                return original(*args, **kwargs)
            with self._named(number):
                return original(*args, **kwargs)

        return computed

    @contextmanager
    def _named(self, number: int) -> Generator[None]:
        steps = self._recorder.steps
        before, steps.named_microbatch = steps.named_microbatch, number
        try:
            yield
        finally:
            steps.named_microbatch = before


def _place(method: Any, index: str) -> int:
    """Where the argument stands; -1 for a method that torch has made otherwise."""
    if not inspect.isfunction(method):
        return -1
    names = list(inspect.signature(method).parameters)
    return names.index(index) if index in names else -1
