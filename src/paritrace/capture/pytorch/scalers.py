"""Optimizer steps that a grad scaler leaves out, since gradients were not finite: training steps all the same.

No hook of the optimizer's is called then. What is stood around is the scaler's own inner call, between its `step` and
the optimizer's, so that the places which their warnings name stay those of the workload.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.amp.grad_scaler import GradScaler

INNER = "_maybe_opt_step"


class ScalerObserver:
    """Calls `skipped` when a scaler was asked to step an optimizer and did not."""

    def __init__(self, *, skipped: Callable[[torch.optim.Optimizer], None]) -> None:
        self._skipped = skipped
        self._original: Any = None
        self._begun = 0

    def optimizer_begins(self) -> None:
        """Some optimizer steps."""
        self._begun += 1

    def install(self) -> None:
        self._original = vars(GradScaler).get(INNER)
        if self._original is not None:
            setattr(GradScaler, INNER, self._around(self._original))

    def remove(self) -> None:
        if self._original is not None:
            setattr(GradScaler, INNER, self._original)
            self._original = None

    def _around(self, original: Any) -> Any:
        @wraps(original)
        def inner(scaler: Any, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
            before = self._begun
            result = original(scaler, optimizer, *args, **kwargs)
            if self._begun == before and not torch.compiler.is_compiling():
                self._skipped(optimizer)
            return result

        return inner
