"""Backward passes: where they begin and end, and the loss they start from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from paritrace.capture.pytorch.memory import scalar_value
from paritrace.capture.pytorch.parts import value_of
from paritrace.capture.recorder import Recorder
from paritrace.evidence import calls
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap


class BackwardObserver:
    """Stands before `torch.autograd.backward` and `torch.autograd.grad`; both run unchanged."""

    def __init__(self, recorder: Recorder, *, begins: Callable[[bool], None], ended: Callable[[bool], None]) -> None:
        self._recorder = recorder
        self._begins = begins
        self._ended = ended
        self._thread = threading.get_ident()
        self._backward: Any = None
        self._grad: Any = None
        self.active = False

    def install(self) -> None:
        self._backward, self._grad = torch.autograd.backward, torch.autograd.grad
        torch.autograd.backward = self._around(self._backward, loss=True)
        torch.autograd.grad = self._around(self._grad, loss=False)

    def remove(self) -> None:
        if self._backward is not None:
            torch.autograd.backward, torch.autograd.grad = self._backward, self._grad
            self._backward = self._grad = None

    def _around(self, original: Any, *, loss: bool) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.active or torch.compiler.is_compiling():
                return original(*args, **kwargs)
            if threading.get_ident() != self._thread:
                self._recorder.count(CountedGap.THREAD_NOT_COVERED, "backward")
                return original(*args, **kwargs)
            self._start(args, kwargs, loss=loss)
            try:
                result = original(*args, **kwargs)
            except BaseException:
                self._ended(False)
                raise
            self._ended(True)
            return result

        call.__name__ = call.__qualname__ = original.__name__
        call.__doc__ = original.__doc__
        call.__module__ = original.__module__
        call.__wrapped__ = original  # type: ignore[attr-defined]  # inspect.signature follows it
        return call

    def _start(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, loss: bool) -> None:
        position = 3 if loss else 4
        create_graph = bool(kwargs.get("create_graph", args[position] if len(args) > position else False))
        self._begins(create_graph)
        if not loss:
            return
        roots = args[0] if args else kwargs.get("tensors")
        try:
            # Anything but a list or tuple, an iterator say, is the workload's to read.
            for root in roots if isinstance(roots, (list, tuple)) else (roots,):
                self._record_loss(root)
        except Exception as error:  # noqa: BLE001  a fault of ours is a gap, never the workload's (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"loss: {type(error).__name__}")

    def _record_loss(self, root: object) -> None:
        if not isinstance(root, torch.Tensor) or root.numel() != 1:
            return
        whole = value_of(root)
        value = None if whole is None else scalar_value(whole)
        steps = self._recorder.steps
        text = Gap(CaptureGap.NOT_OBSERVED) if value is None else value.hex() if value - value == 0 else repr(value)
        self._recorder.emit(calls.LossMark(steps.step, steps.microbatch, text))
