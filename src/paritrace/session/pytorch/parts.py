"""What a torch workload saves: its model, optimizer and scheduler, and this rank's random streams (SE-8, F-15)."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn


class Stateful(Protocol):
    """A scheduler, a grad scaler, a sampler: what has a state of its own."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any], /) -> object: ...


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of a training. `model` is the plain module, not its DDP wrapper; `more` by the name of its section."""

    model: nn.Module
    optimizer: torch.optim.Optimizer | None = None
    more: dict[str, Stateful] = field(default_factory=dict[str, Stateful])


def described(tensor: Tensor, /) -> str:
    """Shape and dtype in words."""
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
