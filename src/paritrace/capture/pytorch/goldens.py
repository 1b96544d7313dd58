"""`--golden`: module calls kept with all that a replay needs: arguments, parameters, buffers, generators (CA-9)."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import torch
from msgspec.structs import replace

from paritrace.capture.pytorch.dumps import Dumps
from paritrace.capture.pytorch.flatten import tensors
from paritrace.capture.pytorch.generator_states import generator_states
from paritrace.capture.pytorch.internals import watch_gradient, without_function_modes
from paritrace.capture.pytorch.kinds import Kinds
from paritrace.capture.pytorch.memory import RELEASED, holds_bytes
from paritrace.capture.pytorch.parts import distribution_of, is_distributed, part_of
from paritrace.capture.pytorch.storages import IN_FLIGHT, UNINITIALISED, WriteLog
from paritrace.capture.pytorch.trees import Trees
from paritrace.capture.recorder import Recorder
from paritrace.evidence.dumps import (
    Autocast,
    Branch,
    GeneratorState,
    Golden,
    GoldenGradient,
    Kept,
    KeptTensor,
    Member,
    tree_text,
)
from paritrace.evidence.gaps import CountedGap

AUTOCAST_DEVICES = ("cpu", "cuda")


class Numbers:
    """Tells tensor objects apart by numbers, without keeping them alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._next = 0

    def of(self, tensor: torch.Tensor) -> int:
        """The number of this object."""
        found = self._known.get(id(tensor))
        if found is not None and found[0]() is tensor:
            return found[1]
        made, self._next = self._next, self._next + 1
        self._known[id(tensor)] = (weakref.ref(tensor), made)
        return made


class Begun:
    """A golden call between entering and leaving: the record so far, without outputs. Holds no tensor (CA-34)."""

    def __init__(self, record: Golden, numbers: Numbers) -> None:
        self.record = record
        self.numbers = numbers


class Goldens:
    """Keeps the forward calls of the modules that `--golden` names."""

    def __init__(
        self, recorder: Recorder, dumps: Dumps, *, kinds: Kinds, log: WriteLog, active: Callable[[], bool]
    ) -> None:
        self._active = active  # not after the capture's end, and never in a forked child
        self._recorder = recorder
        self._dumps = dumps
        self._kinds = kinds
        self._log = log
        self._patterns = recorder.settings.golden
        dumps.asked(f"--golden {pattern}" for pattern in self._patterns)
        self._numbers: Counter[str] = Counter()  # forward calls of each module in this step
        self._next = 0

    def wants(self, module: str) -> bool:
        """Whether calls of this module at this step are kept."""
        steps = self._recorder.steps
        if not self._patterns or steps.backward_depth or not self._recorder.settings.covers(steps.step):
            return False
        met = [pattern for pattern in self._patterns if fnmatchcase(module, pattern)]
        for pattern in met:
            self._dumps.met(f"--golden {pattern}")
        return bool(met)

    def begins(self, module: torch.nn.Module, name: str, cls: str, arguments: tuple[Any, dict[str, Any]]) -> Begun:
        """A call that is wanted is about to run: keep what it gets."""
        number = self._numbers[name]
        self._numbers[name] += 1
        numbers = Numbers()
        steps = self._recorder.steps
        args, kwargs = arguments
        record = Golden(
            id=self._next,
            call=-1,
            module=name,
            cls=cls,
            number=number,
            step=steps.step,
            microbatch=steps.microbatch,
            training=module.training,
            grad_enabled=torch.is_grad_enabled(),
            inference=torch.is_inference_mode_enabled(),
            autocast=tuple(_autocast(device) for device in AUTOCAST_DEVICES),
            inputs=self._inputs(args, kwargs, numbers, name),
            outputs="",
            members=self._members(module, numbers, name),
            generators=tuple(self._generators(name)),
        )
        self._next += 1
        return Begun(record, numbers)

    def ended(self, begun: Begun, output: object, *, call: int, raised: bool) -> None:
        """The call has returned or raised; its gradients are watched from here."""
        record = begun.record
        keep = self._keeping(begun.numbers, record.module)
        outputs = "" if raised else tree_text(Trees(keep).of(output, "out"))
        self._recorder.emit(replace(record, call=call, outputs=outputs, raised=raised))
        if not raised:
            for path, tensor in tensors(output, "out"):
                if tensor.requires_grad and not tensor.is_leaf:
                    watch_gradient(tensor, self._hook(record, path))

    def step_ended(self) -> None:
        """Calls are numbered anew."""
        self._numbers.clear()

    def gradient(self, gradient: torch.Tensor, record: Golden, path: str) -> None:
        """Keep the gradient that has reached an output."""
        kept = self._tensor(gradient, 0, f"the gradient of {record.module} {path}")
        self._recorder.emit(GoldenGradient(record.id, path, kept))

    def _hook(self, record: Golden, path: str) -> Callable[[torch.Tensor], None]:
        slim = replace(record, inputs="", members=(), generators=())

        def hook(gradient: torch.Tensor) -> None:
            if not self._active():
                return
            try:
                with without_function_modes():
                    self.gradient(gradient, slim, path)
            except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
                self._recorder.count(CountedGap.CAPTURE_ERROR, f"golden gradient {path}: {type(error).__name__}")

        return hook

    def _inputs(self, args: Any, kwargs: dict[str, Any], numbers: Numbers, module: str) -> str:
        """The tree of `(args, kwargs)`; paths are those of the call's slots."""
        trees = Trees(self._keeping(numbers, module))
        return tree_text(Branch("tuple", (trees.of(tuple(args), "args"), trees.of(kwargs, "kwargs"))))

    def _keeping(self, numbers: Numbers, module: str) -> Callable[[torch.Tensor, str], KeptTensor]:
        def keep(tensor: torch.Tensor, path: str) -> KeptTensor:
            return self._tensor(tensor, numbers.of(tensor), f"{module} {path}")

        return keep

    def _members(self, module: torch.nn.Module, numbers: Numbers, name: str) -> tuple[Member, ...]:
        """Parameters and buffers, inner ones too; one object stands once with all its names."""
        found: dict[int, tuple[torch.Tensor, bool, list[str]]] = {}
        for buffer, named in (
            (False, module.named_parameters(remove_duplicate=False)),
            (True, module.named_buffers(remove_duplicate=False)),
        ):
            for own, tensor in named:
                found.setdefault(id(tensor), (tensor, buffer, []))[2].append(own)
        return tuple(
            Member(tuple(names), self._tensor(tensor, numbers.of(tensor), f"{name} {names[0]}"), buffer)
            for tensor, buffer, names in found.values()
        )

    def _generators(self, module: str) -> list[GeneratorState]:
        return [
            GeneratorState(
                state.name,
                self._dumps.raw(
                    state.data,
                    dtype=state.dtype,
                    shape=(state.num_words,),
                    itemsize=1 if state.dtype == "uint8" else 4,
                    name=f"{module} {state.name}",
                ),
                state.rest,
            )
            for state in generator_states()
        ]

    def _tensor(self, tensor: torch.Tensor, number: int, name: str) -> KeptTensor:
        kind = self._kinds.of(tensor)
        part = part_of(tensor)
        placed = distribution_of(tensor) if is_distributed(tensor) else None
        geometry = kind.geometry
        return KeptTensor(
            self._kept(part, tensor, name),
            geometry.dtype,
            geometry.shape,
            geometry.logical_strides,
            number,
            requires_grad=tensor.requires_grad,
            device=str(part.device),
            tensor_class=type(tensor).__name__,
            whole=None if placed is None else placed.shape,
            placements=() if placed is None else placed.placements,
        )

    def _kept(self, part: torch.Tensor, tensor: torch.Tensor, name: str) -> Kept:
        kind = self._kinds.of(tensor)
        if not kind.readable:
            return kind.geometry.gap or UNINITIALISED
        if not holds_bytes(part, kind.geometry, part.data_ptr()):
            return RELEASED
        if self._log.in_flight(part, kind):
            return IN_FLIGHT
        return self._dumps.kept(part, kind.geometry, name)


def _autocast(device: str) -> Autocast:
    enabled = torch.is_autocast_enabled(device)
    dtype = str(torch.get_autocast_dtype(device)).partition(".")[2]
    return Autocast(device, enabled, dtype, torch.is_autocast_cache_enabled())
