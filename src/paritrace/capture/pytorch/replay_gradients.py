"""The backward of a replayed call, begun by the gradients that reached its outputs when it was recorded (CP-26)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

import torch

from paritrace.capture.pytorch.internals import without_dispatch_modes

COTANGENT_SEED = 20_260  # of gradients that stand in for those that were not recorded: the same in every replay
Tensors = Mapping[str, torch.Tensor]


class Backward(NamedTuple):
    """Gradients by path, or why there are none.

    `begun`: the outputs that a gradient reached from outside of the call; `drawn`: those of them for which a random one
    stands in.
    """

    gradients: dict[str, torch.Tensor]
    why_none: str = ""
    begun: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()


def backward(outputs: Tensors, wanted: Tensors, recorded: Tensors) -> Backward:
    """The gradients of `wanted`, each output's own gradient being the recorded one.

    What was recorded at an output includes what reached it through other outputs of the call, as attention weights are
    reached through what is made of them. That part comes by itself, and is not put in a second time: a recorded
    gradient takes the place of what has come, and where what has come explains it, nothing does.
    """
    ends = _ends(outputs, recorded)
    if not ends:
        return Backward({}, "no output asks for a gradient")
    if not wanted:
        return Backward({}, "no input and no parameter asks for a gradient")
    given = [_Given(path, tensor, recorded.get(path)) for path, tensor in ends.items()]
    hooks = [one.tensor.register_hook(one.hook) for one in given]
    try:
        begins = [torch.zeros_like(one.tensor) for one in given]
        found = torch.autograd.grad(list(ends.values()), list(wanted.values()), begins, allow_unused=True)
    except RuntimeError as error:
        return Backward({}, f"the backward raised: {_short(error)}")
    finally:
        for hook in hooks:
            hook.remove()
    held = cast(tuple[torch.Tensor | None, ...], found)
    return Backward(
        {path: tensor for path, tensor in zip(wanted, held, strict=True) if tensor is not None},
        begun=tuple(one.path for one in given if one.used),
        drawn=tuple(one.path for one in given if one.used and not one.known),
    )


class _Given:
    """The gradient of one output; `used` once it was put in for what had come by itself."""

    def __init__(self, path: str, tensor: torch.Tensor, recorded: torch.Tensor | None) -> None:
        self.path = path
        self.tensor = tensor
        self.known = recorded is not None and recorded.shape == tensor.shape
        self.used = False
        gradient = recorded if recorded is not None and self.known else _random(tensor)
        self._gradient = gradient.detach().to(device=tensor.device, dtype=tensor.dtype)
        self._explains = _near(recorded) if recorded is not None and self.known else _any

    def hook(self, came: torch.Tensor) -> torch.Tensor:
        if self._explains(came):
            return came
        self.used = True
        return self._gradient


def _near(recorded: torch.Tensor) -> Callable[[torch.Tensor], bool]:
    """Whether a gradient is the recorded one up to round-off: the square root of its dtype's unit, of all elements."""
    unit = torch.finfo(recorded.dtype).eps if recorded.is_floating_point() else 0.0
    most: float = unit**0.5 * float(torch.linalg.vector_norm(recorded.double()))

    def near(came: torch.Tensor) -> bool:
        return float(torch.linalg.vector_norm(came.double() - recorded.double())) <= most

    return near


def _any(came: torch.Tensor) -> bool:
    """Where no gradient was recorded: whether one has come at all."""
    return bool(came.count_nonzero())


def _ends(outputs: Tensors, recorded: Tensors) -> dict[str, torch.Tensor]:
    """The outputs that the backward starts from: those that a gradient reached; where none was recorded, all."""
    asking = {path: tensor for path, tensor in outputs.items() if tensor.requires_grad and tensor.is_floating_point()}
    return {path: tensor for path, tensor in asking.items() if path in recorded} or asking


def _random(output: torch.Tensor) -> torch.Tensor:
    with without_dispatch_modes():  # the same numbers in float64, and no draw of the module's
        seeded = torch.Generator().manual_seed(COTANGENT_SEED)
        return torch.randn(output.shape, generator=seeded, dtype=torch.float32)


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
