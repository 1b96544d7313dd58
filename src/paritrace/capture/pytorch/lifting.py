"""Runs a program's operators in float64 (complex128) whatever dtypes it names: the reference of `judge` (CP-26)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from paritrace.capture.pytorch.operator_schemas import OperatorSchema

WIDER: dict[torch.dtype, torch.dtype] = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex32: torch.complex128,
}

ATTENTION = "aten::_scaled_dot"  # tagged as random for its dropout, which is 0 in nearly all calls


def lifted(value: Any) -> Any:
    """A tensor in the wider dtype of its kind; anything else as it is."""
    if isinstance(value, torch.Tensor) and value.dtype in WIDER:
        return value.to(WIDER[value.dtype])
    return value


class Lifted(TorchDispatchMode):
    """While entered, operators take and make float64 where the program says float32, float16 or bfloat16.

    So a module that computes its norm in float32 on purpose has a reference in float64 all the same. Random numbers are
    drawn in the narrow dtype, as the program draws them, so that the same masks and noise come out; `random` counts
    such draws. `narrow` names operators that had to write into a narrow tensor in place: where there is one, the
    reference is not float64 throughout.
    """

    def __init__(self, narrow: torch.dtype) -> None:
        super().__init__()
        self._narrow = narrow
        self.random = 0
        self.narrow: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = OperatorSchema(func)
        written = tuple(schema.written_of(args, kwargs))
        if schema.seeded and not schema.name.startswith(ATTENTION):
            return self._drawn(func, args, kwargs, in_place=bool(written))
        if any(tensor.dtype in WIDER for tensor in written):  # held by somebody else in a narrow dtype
            self.narrow[str(func)] += 1
            return func(*args, **kwargs)
        return func(*pytree.tree_map(_wide, args), **pytree.tree_map(_wide, kwargs))

    def _drawn(self, func: Any, args: Any, kwargs: Any, *, in_place: bool) -> Any:
        self.random += 1
        if not in_place or args[0].dtype not in (torch.float64, torch.complex128):
            return pytree.tree_map(lifted, func(*pytree.tree_map(self._narrowed, args), **kwargs))
        drawn = torch.empty_like(args[0], dtype=self._narrow)
        drawn.copy_(args[0])
        func(drawn, *pytree.tree_map(self._narrowed, args[1:]), **kwargs)
        return args[0].copy_(drawn)

    def _narrowed(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype is torch.float64:
            return value.to(self._narrow)
        return value


def _wide(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return WIDER.get(value, value)
    return lifted(value)
