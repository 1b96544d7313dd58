"""One module call on forced inputs, parameters and generators, as a function that changes nothing (CP-26)."""

from __future__ import annotations

import random
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from paritrace.capture.pytorch.flatten import tensors
from paritrace.capture.pytorch.lifting import Lifted, lifted
from paritrace.capture.pytorch.replay_gradients import Backward, backward
from paritrace.capture.pytorch.replay_members import Members, forced_members, own_members
from paritrace.capture.pytorch.replay_values import Values, generators_set
from paritrace.evidence.dumps import tree_of
from paritrace.evidence.replays import ReplayTask


@dataclass(frozen=True)
class Forced:
    """What a call is to be made with; `tensors` are those of the arguments, by the path of each."""

    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    members: Members
    tensors: dict[str, torch.Tensor]
    cotangents: Mapping[str, torch.Tensor]
    task: ReplayTask
    not_forced: tuple[str, ...]

    @property
    def narrow(self) -> torch.dtype:
        """The narrow floating dtype that the call works in, by its tensors; float32 where none is narrower."""
        found = [value.dtype for value in (*self.tensors.values(), *self.members.tensors.values())]
        return next((dtype for dtype in (torch.bfloat16, torch.float16) if dtype in found), torch.float32)


NO_BACKWARD = Backward({})


@dataclass
class Computed:
    """Outputs by path, and what the backward gave, if it was asked for."""

    outputs: dict[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])
    backward: Backward = NO_BACKWARD
    random: int = 0
    narrow: tuple[str, ...] = ()


def force(module: torch.nn.Module, task: ReplayTask, *, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Forced:
    """Read the golden call for this module; `args` and `kwargs` are those of the live call.

    Raises:
        EvidenceError: Failed: `replay_argument`, `unlike_parameters`; as for reading tensors.
    """
    values = Values(Path(task.tensors))
    forced_args, forced_kwargs = values.build(tree_of(task.golden.inputs), (args, kwargs))
    found = values.tensors
    if task.own_weights:
        members = own_members(module)
    else:
        members = forced_members(module, task.golden.members, values, names=task.names)
    cotangents = _gradients_read(task)
    not_forced = (*values.not_forced, *members.own)
    return Forced(module, tuple(forced_args), forced_kwargs, members, found, cotangents, task, not_forced)


def _gradients_read(task: ReplayTask) -> dict[str, torch.Tensor]:
    """The gradients that reached the outputs; their numbers are none of the arguments'."""
    read = {path: Values(Path(task.tensors)).tensor(kept) for path, kept in task.gradients.items()}
    return {path: tensor for path, tensor in read.items() if tensor is not None}


def compute(forced: Forced, *, wide: bool, gradients: bool) -> Computed:
    """Make the call, in the program's dtypes or in float64, on copies; what the module raises passes through."""
    copies = _Copies(wide)
    args, kwargs = pytree.tree_map(copies, (forced.args, forced.kwargs))
    members = {name: copies(tensor) for name, tensor in forced.members.tensors.items()}
    mode = Lifted(forced.narrow) if wide else None
    result = Computed()
    with ExitStack() as stack:
        _enter_contexts(stack, forced, gradients=gradients, wide=wide)
        if mode is not None:
            stack.enter_context(mode)
        output = torch.func.functional_call(forced.module, members, args, kwargs)
        result.outputs = dict(tensors(output, "out"))
        if gradients:
            wanted = _asking(forced, copies)
            result.backward = backward(result.outputs, wanted, forced.cotangents)
    if mode is not None:
        result.random, result.narrow = mode.random, tuple(mode.narrow)
    return result


class Call:
    """The call as a function of its tensors: those of the arguments by path, parameters by this module's names."""

    def __init__(self, forced: Forced) -> None:
        self._forced = forced
        self.tensors = dict(forced.tensors) | {
            f"parameter {name}": tensor for name, tensor in forced.members.tensors.items()
        }

    def __call__(self, given: Mapping[str, torch.Tensor]) -> Any:
        """The output with these tensors in the places of the recorded ones."""
        own = {id(tensor): given[name] for name, tensor in self.tensors.items()}

        def placed(value: Any) -> Any:
            return own.get(id(value), value)

        args, kwargs = pytree.tree_map(placed, (self._forced.args, self._forced.kwargs))
        members = {name: own[id(tensor)] for name, tensor in self._forced.members.tensors.items()}
        return torch.func.functional_call(self._forced.module, members, args, kwargs)


@contextmanager
def prepared(forced: Forced) -> Generator[Call]:
    """The call as a function, without gradients, generators as recorded until the block ends."""
    with ExitStack() as stack:
        _enter_contexts(stack, forced, gradients=False, wide=False)
        yield Call(forced)


def _enter_contexts(stack: ExitStack, forced: Forced, *, gradients: bool, wide: bool) -> None:
    """Generators as recorded, and given back afterwards; gradients on where they are wanted; no compiler in float64."""
    stack.enter_context(torch.random.fork_rng(devices=range(torch.cuda.device_count()) if _cuda() else []))
    stack.callback(random.setstate, random.getstate())
    if "numpy.random" in sys.modules:
        numpy_random = sys.modules["numpy.random"]
        stack.callback(numpy_random.set_state, numpy_random.get_state())
    generators_set(Path(forced.task.tensors), forced.task.golden.generators)
    stack.enter_context(torch.inference_mode(False))
    stack.enter_context(torch.set_grad_enabled(gradients))
    if wide and "torch._dynamo" in sys.modules:
        stack.enter_context(torch.compiler.set_stance("force_eager"))


def _cuda() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_initialized()


class _Copies:
    """Copies tensors, the same tensor into the same copy; in float64 where that is asked."""

    def __init__(self, wide: bool) -> None:
        self._wide = wide
        self._made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self._made:
            plain = lifted(value.detach()) if self._wide else value.detach().clone()
            copy = plain.clone() if plain is value else plain
            self._made[id(value)] = (value, copy.requires_grad_(value.requires_grad))
        return self._made[id(value)][1]


def _asking(forced: Forced, copies: _Copies) -> dict[str, torch.Tensor]:
    """The inputs and parameters that ask for a gradient, by path; parameters by their recorded names."""
    named = dict(forced.tensors)
    named.update({forced.members.recorded[name]: tensor for name, tensor in forced.members.tensors.items()})
    return {path: copies(tensor) for path, tensor in named.items() if tensor.requires_grad}
