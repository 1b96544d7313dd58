"""Whether a stored state fits the resident one: every invariant that fails, in words (SE-8, F-09)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from paritrace.session.pytorch.parts import Parts, described


def misfits(parts: Parts, stored: Mapping[str, Any], /) -> tuple[str, ...]:
    """Return everything in which the sections of a checkpoint do not fit; empty where all of them do.

    Looked at are names, shapes and dtypes of the model's parameters and buffers, the optimizer's groups, their settings
    and the state of each parameter, and the names of what else has a state. No tensor's content is read.
    """
    missing = [f"{name}: no such section" for name in _sections(parts) if name not in stored]
    found = list(missing)
    if "model" in stored:
        found += misfits_of_model(parts.model.state_dict(), stored["model"])
    if parts.optimizer is not None and "optimizer" in stored:
        found += _of_optimizer(parts.optimizer, stored["optimizer"])
    for name, part in parts.more.items():
        if name in stored:
            found += _of_names(name, set(part.state_dict()), set(stored[name]))
    return tuple(found)


def misfits_of_model(ours: Mapping[str, Tensor], stored: Mapping[str, Tensor], /) -> list[str]:
    """Return the names that are missing or too many, and the tensors of another shape or dtype."""
    found = _of_names("model", set(ours), set(stored))
    for name in sorted(ours.keys() & stored.keys()):
        if described(ours[name]) != described(stored[name]):
            found.append(f"model.{name}: {described(stored[name])} where {described(ours[name])} belongs")
    return found


def _sections(parts: Parts) -> tuple[str, ...]:
    return ("step", "model", *(() if parts.optimizer is None else ("optimizer",)), *parts.more)


def _of_names(section: str, ours: set[str], stored: set[str]) -> list[str]:
    return [
        *(f"{section}.{name}: missing" for name in sorted(ours - stored)),
        *(f"{section}.{name}: unknown here" for name in sorted(stored - ours)),
    ]


def _of_optimizer(optimizer: torch.optim.Optimizer, stored: Mapping[str, Any]) -> list[str]:
    ours, theirs = optimizer.param_groups, stored.get("param_groups", [])
    if len(ours) != len(theirs):
        return [f"optimizer: {len(theirs)} groups where {len(ours)} belong"]
    found: list[str] = []
    for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        name = f"optimizer.group {number}"
        if len(own["params"]) != len(other["params"]):
            found.append(f"{name}: {len(other['params'])} parameters where {len(own['params'])} belong")
            continue
        found += _of_names(name, set(own), set(other))
        for parameter, index in zip(own["params"], other["params"], strict=True):
            found += _of_parameter(f"optimizer.state {index}", parameter, stored.get("state", {}).get(index, {}))
    return found


def _of_parameter(name: str, parameter: Tensor, state: Mapping[str, Any]) -> list[str]:
    """A moment has its parameter's shape; a step count has one element."""
    return [
        f"{name}.{key}: shape {tuple(value.shape)} where {tuple(parameter.shape)} belongs"
        for key, value in sorted(state.items())
        if isinstance(value, Tensor) and value.numel() != 1 and value.shape != parameter.shape
    ]
