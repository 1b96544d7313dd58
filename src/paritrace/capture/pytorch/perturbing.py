"""Moves floating results by -1, 0 or +1 unit in the last place, at random: one draw of the envelope (CP-10a)."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from paritrace.capture.pytorch.kinds import Kinds, KnownKind
from paritrace.capture.pytorch.memory import holds_bytes
from paritrace.capture.pytorch.operators import Operator
from paritrace.capture.steps import Steps
from paritrace.evidence.calls import Phase

# The integers that hold the bits of a float, and of it the bits without the sign, the largest finite value's bits.
_WORDS: dict[str, tuple[type[np.unsignedinteger[Any]], int, int]] = {
    "float64": (np.uint64, (1 << 63) - 1, 0x7FEF_FFFF_FFFF_FFFF),
    "float32": (np.uint32, (1 << 31) - 1, 0x7F7F_FFFF),
    "float16": (np.uint16, (1 << 15) - 1, 0x7BFF),
    "bfloat16": (np.uint16, (1 << 15) - 1, 0x7F7F),
}
PHASES = tuple(Phase)
# They choose or copy numbers and round none. Moving what they give would also move a mask: of scores filled with -1e30
# a unit in the last place is 1e23, and the softmax of a row that is masked whole would be another one in every draw.
_ROUND_NOTHING = frozenset(
    {"masked_fill", "fill", "where", "cat", "stack", "gather", "index_select", "index", "embedding", "clone", "copy"}
)


class Perturbing:
    """One draw. What is drawn depends on the seed, the step, the phase and which operator of the phase it is.

    So ranks that make the same calls draw the same, and replicas stay replicas. Zeros, the largest finite value and
    what is not finite stay as they are; so do results of random operators, of those that only choose or copy, views,
    uninitialised memory, single numbers that an optimizer counts with, and all outside of forward, loss, backward
    and optimizer.
    """

    def __init__(self, seed: int, *, kinds: Kinds, steps: Steps) -> None:
        self._seed = seed
        self._kinds = kinds
        self._steps = steps
        self._phase: tuple[int, Phase] = (-1, Phase.FORWARD)
        self._ordinal = 0

    def results(self, operator: Operator, arguments: tuple[Any, ...], result: Any, *, in_module: bool) -> None:
        """Move what an operator has just returned or written."""
        phase = self._steps.phase(in_module=in_module)
        if (self._steps.step, phase) != self._phase:
            self._phase, self._ordinal = (self._steps.step, phase), 0
        ordinal = self._ordinal
        self._ordinal = ordinal + 1
        if operator.is_view or operator.uninitialised or operator.seeded or operator.collective:
            return
        if operator.name.split(".")[1].rstrip("_") in _ROUND_NOTHING:
            return
        found = list(_floating(result)) or (list(_floating(arguments[:1])) if operator.written else [])
        for place, tensor in enumerate(found):
            if phase is Phase.FORWARD and not (in_module or _asks(arguments)):
                return  # data on its way to the model is no result of it
            if phase is Phase.OPTIMIZER and tensor.numel() == 1:
                continue
            self._move(tensor, (self._seed, self._steps.step, PHASES.index(phase), ordinal, place))

    def _move(self, tensor: torch.Tensor, key: tuple[int, ...]) -> None:
        kind = self._kinds.of(tensor)
        words = _WORDS.get(kind.geometry.dtype)
        address = tensor.data_ptr() if kind.readable else 0
        if words is None or not kind.geometry.num_bytes or not holds_bytes(tensor, kind.geometry, address):
            return
        bits = _bits(address, kind, words[0])
        magnitude = bits & words[0](words[1])
        free = (magnitude > 0) & (magnitude < words[0](words[2]))
        drawn = np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))
        moves = drawn.integers(-1, 2, bits.shape, dtype=np.int8).astype(f"i{bits.itemsize}") * free
        bits += moves.view(bits.dtype)  # a negative move wraps around, as the bits of two's complement do


def _bits(address: int, kind: KnownKind, word: type[np.unsignedinteger[Any]]) -> npt.NDArray[Any]:
    """The elements that hold memory, as integers that can be written."""
    geometry = kind.geometry
    raw: Any = (ctypes.c_char * geometry.span).from_address(address)
    return np.ndarray(geometry.sizes, word, buffer=raw, strides=[s * geometry.itemsize for s in geometry.strides])


def _floating(values: Any) -> Any:
    if isinstance(values, torch.Tensor):
        if values.is_floating_point():
            yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _floating(value)


def _asks(arguments: tuple[Any, ...]) -> bool:
    return any(tensor.requires_grad for tensor in _floating(arguments))
