"""Tensors that wrap others, such as DTensor: their own dispatch runs, and what it does inside is what is recorded.

Returned `NotImplemented`, torch hands the operator to the wrapper's class with the mode still on, so that its local
operators and collectives are seen; the wrapper's operator is then no call of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FrameType

from torch.utils._python_dispatch import is_traceable_wrapper_subclass_type

from paritrace.capture.pytorch.internals import fake_mode_active

_PROPAGATION = "torch.distributed.tensor._sharding_prop"
MAX_FRAMES = 64  # between an operator of the propagation and the propagation itself lie about a dozen


class TensorWrappers:
    """Classes of wrappers met so far."""

    def __init__(self) -> None:
        self._known: dict[type, bool] = {}
        self.met = False

    def among(self, types: Iterable[type]) -> bool:
        """Whether any argument is a wrapper."""
        for cls in types:
            known = self._known.get(cls)
            if known is None:
                known = self._known[cls] = bool(is_traceable_wrapper_subclass_type(cls))
            if known:
                self.met = True
                return True
        return False

    def propagates(self, frame: FrameType) -> bool:
        """Whether DTensor is asking an operator on fake tensors for shapes: metadata, no call of the workload."""
        if not self.met or not fake_mode_active():
            return False
        module = sys.modules.get(_PROPAGATION)
        path = None if module is None else module.__file__
        caller: FrameType | None = frame
        for _ in range(MAX_FRAMES):
            if caller is None:
                return False
            if caller.f_code.co_filename == path:
                return True
            caller = caller.f_back
        return False
