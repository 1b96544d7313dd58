"""The state inventory at step boundaries: what a step starts from and what it left (CA-29)."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import xxhash

from paritrace.capture.pytorch.flatten import tensors
from paritrace.capture.pytorch.foreign_state import fp8_scales, megatron_generators
from paritrace.capture.pytorch.kinds import KnownKind
from paritrace.capture.pytorch.memory import RELEASED, holds_bytes, logical_buffer
from paritrace.capture.pytorch.names import UNNAMED
from paritrace.capture.pytorch.parts import part_of
from paritrace.capture.pytorch.registers import Registers
from paritrace.capture.pytorch.training_state import TrainingState
from paritrace.capture.recorder import Recorder
from paritrace.evidence import calls, summaries
from paritrace.evidence.gaps import CaptureGap, Gap

NOT_CAPTURED = ("python_objects",)
FLAT_SHARDS = "placements_of_flat_shards"  # the first FSDP's parameters, gradients and state are parts of a flat whole
SAMPLED = frozenset({"parameter", "buffer", "gradient", "optimizer_state"})  # what an envelope can judge by size
Value = str | Gap[CaptureGap]


class Inventory:
    """Takes the groups of the inventory and writes one row each."""

    def __init__(self, recorder: Recorder, registers: Registers) -> None:
        self._recorder = recorder
        self._kinds = registers.kinds
        self._names = registers.names
        self._generators = registers.generators
        self._optimizers: list[weakref.ref[torch.optim.Optimizer]] = []
        self._configurations: dict[int, dict[str, str]] = {}
        self._models: set[int] = set()
        self._training = TrainingState()
        self._not_captured: tuple[str, ...] = ()

    def begin(self) -> None:
        """Parameters, buffers, optimizer state and generators before the step's first forward."""
        self._names.refresh()
        self._tensors("begin", "parameter", [*self._names.parameters(), *self._unnamed_parameters()])
        self._tensors("begin", "buffer", list(self._names.buffers()))
        self._tensors("begin", "optimizer_state", list(self._optimizer_state()))
        states = self._generators.states()
        self._plain("rng", [*states, *megatron_generators()])
        for group, rows in self._training.groups(self._recorder.steps.step):
            self._plain(group, rows)
        self._plain("fp8", list(fp8_scales(self._names.all_modules())))
        self._say_not_captured()

    def batch(self, args: Any, kwargs: Any) -> None:
        """The inputs of a root module: the batch, with the order of its elements, which its sums do not see."""
        found = [*tensors(args, "args"), *tensors(kwargs, "kwargs")]
        self._orders([(name, tensor, self._kinds.of(tensor)) for name, tensor in found])
        self._tensors("batch", "batch", found)

    def _orders(self, found: list[tuple[str, torch.Tensor, KnownKind]]) -> None:
        values: list[Value] = []
        for _, tensor, kind in found:
            part = part_of(tensor)
            if kind.readable and holds_bytes(part, kind.geometry, part.data_ptr()):
                values.append(xxhash.xxh3_64_hexdigest(logical_buffer(part.data_ptr(), kind.geometry)))
            else:
                values.append(kind.geometry.gap or RELEASED)
        self._write("batch", "batch_order", [name for name, _, _ in found], [kind.id for _, _, kind in found], values)

    def meet(self, optimizer: torch.optim.Optimizer) -> None:
        """Have an optimizer's state and settings in the inventory from now on."""
        known = [reference() for reference in self._optimizers]
        if not any(seen is optimizer for seen in known):
            self._optimizers.append(weakref.ref(optimizer))
            # What it holds already was loaded: the step began with it, whenever it is first met (CP-28).
            self._tensors("begin", "optimizer_state", list(self._state_of(optimizer)), microbatch=0)
        self._configuration(optimizer)

    def gradients(self, optimizer: torch.optim.Optimizer) -> None:
        """Gradients as the optimizer is about to use them, their norm, and the optimizer's settings."""
        self.meet(optimizer)
        found = [
            (self._parameter_name(parameter, group, index), parameter.grad)
            for group, settings in enumerate(optimizer.param_groups)
            for index, parameter in enumerate(settings["params"])
        ]
        squares = self._tensors("grads", "gradient", found)
        self._recorder.grad_squares[id(optimizer)] = squares
        kinds = [self._kinds.of(gradient) for _, gradient in found if gradient is not None]
        if self._names.flat_shards or not all(kind.whole for kind in kinds):
            self._recorder.norm_lacks.add("parts on other ranks")
        if not all(kind.readable for kind in kinds):
            self._recorder.norm_lacks.add("gradients that were not read")

    def model(self, module: torch.nn.Module) -> None:
        """Settings that a model carries itself, as transformers' models do."""
        if id(module) in self._models:
            return
        self._models.add(id(module))
        config = vars(module).get("config")
        to_dict = vars(type(config)).get("to_dict") or next(
            (vars(base)["to_dict"] for base in type(config).__mro__ if "to_dict" in vars(base)), None
        )
        if config is not None and to_dict is not None:
            values = _flat(to_dict(config))
            implementation = vars(config).get("_attn_implementation_internal")
            if isinstance(implementation, str):
                values["attn_implementation"] = implementation
            self._recorder.emit(calls.ConfigMark("model", values))

    def named_states(self) -> Iterator[tuple[calls.OriginKind, str, torch.Tensor]]:
        """Everything that has a name, for the origin of slots."""
        for name, tensor in self._names.parameters():
            yield calls.OriginKind.PARAMETER, name, tensor
        for name, tensor in self._unnamed_parameters():
            yield calls.OriginKind.PARAMETER, name, tensor
        for name, tensor in self._names.buffers():
            yield calls.OriginKind.BUFFER, name, tensor
        for name, parameter in self._names.parameters():
            if parameter.grad is not None:
                yield calls.OriginKind.GRADIENT, name, parameter.grad
        for name, tensor in self._optimizer_state():
            yield calls.OriginKind.OPTIMIZER_STATE, name, tensor

    def _unnamed_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Parameters of optimizers that no module seen so far has: those of a training without modules."""
        for reference in self._optimizers:
            optimizer = reference()
            for group, settings in enumerate([] if optimizer is None else optimizer.param_groups):
                for index, parameter in enumerate(settings["params"]):
                    if self._names.of_parameter(parameter) == UNNAMED:
                        yield self._parameter_name(parameter, group, index), parameter

    def _optimizer_state(self) -> Iterator[tuple[str, torch.Tensor]]:
        for reference in self._optimizers:
            optimizer = reference()
            if optimizer is not None:
                yield from self._state_of(optimizer)

    def _state_of(self, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
        for group, settings in enumerate(optimizer.param_groups):
            for index, parameter in enumerate(settings["params"]):
                owner = self._parameter_name(parameter, group, index)
                for key, value in sorted(optimizer.state.get(parameter, {}).items(), key=lambda item: str(item[0])):
                    if isinstance(value, torch.Tensor):
                        yield f"{owner}:{key}", value

    def _parameter_name(self, parameter: torch.Tensor, group: int, index: int) -> str:
        name = self._names.of_parameter(parameter)
        return name if name != UNNAMED else f"group{group}.parameter{index}"

    def _configuration(self, optimizer: torch.optim.Optimizer) -> None:
        values = {"class": f"{type(optimizer).__module__}.{type(optimizer).__qualname__}"}
        for group, settings in enumerate(optimizer.param_groups):
            for key, value in settings.items():
                if key != "params":
                    values[f"group{group}.{key}"] = repr(value) if not isinstance(value, torch.Tensor) else "tensor"
        if self._configurations.get(id(optimizer)) != values:
            self._configurations[id(optimizer)] = values
            self._recorder.emit(calls.ConfigMark("optimizer", values))

    def _tensors(
        self,
        moment: str,
        group: str,
        found: Sequence[tuple[str, torch.Tensor | None]],
        *,
        microbatch: int | None = None,
    ) -> float:
        names: list[str] = []
        kinds: list[int] = []
        values: list[Value] = []
        samples: list[str] = []
        wanted = group in SAMPLED and calls.Level.MODULE in self._recorder.plan.written(self._recorder.steps.step)
        total = 0.0
        for name, tensor in found:
            names.append(name)
            samples.append("")
            if tensor is None:
                kinds.append(-1)
                values.append(Gap(CaptureGap.NOT_OBSERVED))
                continue
            kind = self._kinds.of(tensor)
            kinds.append(kind.id)
            if not kind.readable:
                values.append(kind.geometry.gap or Gap(CaptureGap.NO_DATA))
                continue
            part = part_of(tensor)
            if not holds_bytes(part, kind.geometry, part.data_ptr()):
                values.append(RELEASED)
                continue
            buffer = logical_buffer(part.data_ptr(), kind.geometry)
            if group == "gradient":
                total_elements, squares = summaries.elements_and_squares(buffer, kind.geometry.dtype)
                total += squares
            else:
                total_elements = summaries.element_sum(buffer, kind.geometry.dtype)
            values.append(format(total_elements, "016x"))
            if wanted:
                samples[-1] = summaries.sampled_elements(buffer, kind.geometry.dtype, kind.samples)
        self._write(moment, group, names, kinds, values, samples=samples if wanted else (), microbatch=microbatch)
        return total

    def _write(  # noqa: PLR0913  one row, and where it belongs
        self,
        moment: str,
        group: str,
        names: list[str],
        kinds: list[int],
        values: list[Value],
        *,
        samples: Sequence[str] = (),
        microbatch: int | None = None,
    ) -> None:
        if not names:
            return
        steps = self._recorder.steps
        known = self._recorder.definitions.state_names(group, tuple(names), tuple(kinds))
        at = steps.microbatch if microbatch is None else microbatch
        self._recorder.emit(calls.State(steps.step, at, moment, known, tuple(values)))
        if any(samples):
            self._recorder.emit(calls.StateSamples(steps.step, at, moment, known, tuple(samples)))

    def _plain(self, group: str, rows: Sequence[tuple[str, Value]]) -> None:
        """One row of values that are no tensors, or numbers in clear."""
        self._write("begin", group, [name for name, _ in rows], [-1] * len(rows), [value for _, value in rows])

    def _say_not_captured(self) -> None:
        flat = (FLAT_SHARDS,) if self._names.flat_shards else ()
        names = (*NOT_CAPTURED, *self._training.not_captured(), *flat, *self._names.extra_state())
        if names != self._not_captured:
            self._not_captured = names
            self._recorder.emit(calls.NotCaptured(names))


def _flat(values: Any, prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(values, dict):
        for key, value in values.items():
            found |= _flat(value, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(values, (list, tuple)):
        found[prefix] = repr(list(values))[:200]
    elif values is None or isinstance(values, (bool, int, float, str)):
        found[prefix] = str(values)[:200]
    return found
