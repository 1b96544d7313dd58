"""Running one operator, also where torch hands a dispatch mode a plain number for a tensor.

Constants of a traced graph (`torch.jit.trace`, TensorBoard's `add_graph`) are tensors that wrap a number. On their way
to a Python mode they become numbers, and some operators then refuse them, so that a workload that runs without a mode
would fail under ours.
"""

from __future__ import annotations

from typing import Any

import torch

# The dtype that a tensor has which wraps a number of this type.
_WRAPPED: dict[type, torch.dtype] = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
    complex: torch.complex128,
}


def run_operator(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the operator; once more with tensors if it refused numbers that stand where its schema has tensors."""
    try:
        return func(*args, **kwargs)
    except RuntimeError:
        restored = _with_tensors(func, args)
        if restored is None:
            raise
        return func(*restored, **kwargs)


def _with_tensors(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments with wrapped numbers as tensors again; None where no number stands for a tensor."""
    schema = vars(func).get("_schema")
    if schema is None:
        return None
    restored = tuple(
        torch.scalar_tensor(value, dtype=_WRAPPED[type(value)])
        if type(value) in _WRAPPED and isinstance(argument.type, torch.TensorType)
        else value
        for value, argument in zip(args, schema.arguments, strict=False)
    )
    return None if all(new is old for new, old in zip(restored, args, strict=True)) else restored
