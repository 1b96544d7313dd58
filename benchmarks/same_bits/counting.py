"""A dispatch mode that only counts: which operators a training dispatches, and in which order (CA-34)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Counting(TorchDispatchMode):
    """Notes every dispatched operator in order, and whether its tensors' storages can be resized.

    A wrapper such as DTensor is asked itself: its local operators are counted behind its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.resizable: Counter[bool] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.names.append(str(func))
        if any(issubclass(kind, torch.Tensor) and kind not in PLAIN for kind in types):
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        for value in (*args, *(result if isinstance(result, tuple) else (result,))):
            if type(value) in PLAIN and has_storage(value):
                self.resizable[value.untyped_storage().resizable()] += 1
        return result

    def digest(self) -> str:
        """SHA-256 over the names in order."""
        return hashlib.sha256("\n".join(self.names).encode()).hexdigest()

    def without(self, names: frozenset[str]) -> None:
        """Forget operators that may run on another thread."""
        if names:
            self.names = [name for name in self.names if name not in names]
            self.resizable.clear()


PLAIN = (torch.Tensor, torch.nn.Parameter)


def has_storage(tensor: torch.Tensor) -> bool:
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return tensor.layout is torch.strided and not wrapped and not tensor.is_meta


def counted(training: Iterable[torch.Tensor]) -> Counting:
    """What a training dispatches from its first to its last tensor, with a seed of its own."""
    torch.manual_seed(0)
    counting = Counting()
    with counting:
        for _ in training:
            pass
    return counting
