"""Optimizer steps, by torch's global step hooks: they end training steps and show the reduced gradients (CA-3)."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

_OPTIMIZERS = torch.optim.Optimizer.profile_hook_step.__code__.co_filename


def steps_on_stack(frame: FrameType | None) -> int:
    """How many optimizer steps are being made by this frame and its callers: each has torch's wrapper around it."""
    found = 0
    while frame is not None:
        code = frame.f_code
        found += code.co_name == "wrapper" and code.co_filename == _OPTIMIZERS
        frame = frame.f_back
    return found


class OptimizerObserver:
    """Calls `begins` and `ended` around every optimizer step."""

    def __init__(
        self, *, begins: Callable[[torch.optim.Optimizer], None], ended: Callable[[torch.optim.Optimizer], None]
    ) -> None:
        self._begins = begins
        self._ended = ended
        self._handles: list[RemovableHandle] = []

    def install(self) -> None:
        self._handles = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _before(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            self._begins(optimizer)

    def _after(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            self._ended(optimizer)
