"""Level `op`: every dispatched operator, forward, backward and optimizer, seen by a dispatch mode (CA-10, CA-15).

Longer than 400 lines: the way of one operator from dispatch to record is a hot path, read and measured as one piece.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from paritrace.capture.pytorch.collective_calls import CollectiveCalls, Owner
from paritrace.capture.pytorch.dumps import Dumps
from paritrace.capture.pytorch.flights import NOT_RECORDED
from paritrace.capture.pytorch.internals import current_node
from paritrace.capture.pytorch.links import ACCUMULATE, NO_LINK, UNLINKED, ForwardNodes, Link, Originals
from paritrace.capture.pytorch.numbers import run_operator
from paritrace.capture.pytorch.operators import REGION, WITHOUT_TENSORS, Operator, describe, region
from paritrace.capture.pytorch.perturbing import Perturbing
from paritrace.capture.pytorch.registers import Registers
from paritrace.capture.pytorch.scalars import ScalarTexts
from paritrace.capture.pytorch.slots import Slots
from paritrace.capture.pytorch.storages import WriteLog
from paritrace.capture.pytorch.tensor_wrappers import TensorWrappers
from paritrace.capture.recorder import Recorder
from paritrace.capture.sites import Place
from paritrace.evidence import calls
from paritrace.evidence.calls import Flag, Level
from paritrace.evidence.distributed import Collective
from paritrace.evidence.gaps import CountedGap

_grad_enabled = torch.is_grad_enabled
IGNORED = region(-1)  # an operator that is never recorded


@dataclass(slots=True)
class Begun:
    """A call between dispatch and return. Holds no tensor (CA-34)."""

    id: int
    operator: Operator
    place: Place
    scope: int
    context: int
    parent: int
    flags: int
    link: int
    node: int
    scalars: int
    inputs: tuple[calls.Slot, ...]
    started_ns: int
    owner: Owner | None = None
    collective: Collective | None = None


class OpMode(TorchDispatchMode):
    """The dispatch mode. It runs every operator exactly once with the arguments it was given."""

    supports_higher_order_operators = True

    def __init__(self, observer: OpObserver) -> None:
        super().__init__()
        self._observer = observer
        self._run = run_operator if observer.perturbing is None else observer.perturbed

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled regions stay compiled (CA-15)."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Observe one operator. A fault of ours becomes a gap; the operator's own error passes through."""
        observer = self._observer
        kwargs = kwargs or {}
        if not observer.active and observer.perturbing is None:
            return run_operator(func, args, kwargs)
        if types and observer.unwraps(func, types, args, kwargs):
            return NotImplemented
        if not observer.active:
            return self._run(func, args, kwargs)
        begun = observer.begin(func, args, kwargs)
        if begun is None:
            return self._run(func, args, kwargs)
        try:
            result = self._run(func, args, kwargs)
        except BaseException:
            observer.raised(begun)
            raise
        observer.end(begun, args, kwargs, result)
        return result


class OpObserver:
    """Turns dispatched operators into call records."""

    def __init__(
        self,
        recorder: Recorder,
        registers: Registers,
        *,
        on_grad_op: Callable[[], None],
        on_region: Callable[[], None],
    ) -> None:
        self._recorder = recorder
        self._kinds = registers.kinds
        self._names = registers.names
        self._scopes = registers.scopes
        self._generators = registers.generators
        self._on_grad_op = on_grad_op
        self._on_region = on_region
        self._region: Operator | None = None
        self._inside_region = 0
        self._operators: dict[Any, Operator] = {}
        self._scalars = ScalarTexts(recorder.definitions)
        unknown = recorder.definitions.origin(calls.OriginKind.UNKNOWN, "")
        self.log = WriteLog(unknown=unknown, check_reuse=recorder.settings.check_reuse)
        self.collectives = CollectiveCalls(recorder, registers, log=self.log)
        self.slots = Slots(
            kinds=registers.kinds,
            log=self.log,
            flights=self.collectives.flights,
            definitions=recorder.definitions,
            summaries=registers.summaries if recorder.settings.statistics else None,
            dumps=registers.dumps,
        )
        self._dumps = registers.dumps
        self._wrappers = TensorWrappers()
        self._nodes = ForwardNodes()
        self._originals = Originals()
        self._scope_of: dict[int, int] = {}
        self._everything = recorder.settings.selection.everything
        self.create_graph = False
        self.active = False
        seed = recorder.settings.perturb_seed
        self.perturbing = Perturbing(seed, kinds=registers.kinds, steps=recorder.steps) if seed else None

    def perturbed(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator and move its floating results: this run is a draw of the envelope (CP-10a)."""
        result = run_operator(func, args, kwargs)
        if self.perturbing is not None:
            try:
                operator = self._operators.get(func) or self._describe(func)
                self.perturbing.results(operator, args, result, in_module=self._scopes.depth > 0)
            except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
                self._recorder.count(CountedGap.CAPTURE_ERROR, f"perturbing {func}: {type(error).__name__}")
        return result

    def other_thread_seen(self) -> None:
        """From here to the end of the step no backward link is sure."""
        self._nodes.other_threads = True

    def around_region(self, original: Callable[[Any, Any], Any], graph: Any, inputs: Any) -> Any:
        """A compiled region runs: record its border. What it writes is not seen, so nothing is reused across it."""
        begun = self._begin_region(inputs) if self.active else None
        if begun is None:
            return original(graph, inputs)
        self._inside_region += 1
        try:
            result = original(graph, inputs)
        except BaseException:
            self.raised(begun)
            raise
        finally:
            self._inside_region -= 1
        self._on_region()
        self.end(begun, (), {}, result)
        return result

    def _begin_region(self, inputs: Any) -> Begun | None:
        try:
            if self._region is None:
                self._region = region(self._recorder.definitions.function(REGION, Level.OP))
            place = self._recorder.sites.place(sys._getframe(2))
            begun = self._begin(self._region, place, current_node(), _grad_enabled(), (tuple(inputs), {}))
            begun.flags |= Flag.COMPILED
        except Exception as error:  # noqa: BLE001  a fault of ours is a gap, never the workload's (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"compiled region: {type(error).__name__}")
            return None
        return begun

    def step_ended(self) -> None:
        """Reuse and links do not cross a step (CA-32)."""
        self.log.forget()
        self.collectives.step_ended()
        self._nodes.forget()
        self._originals.forget()
        self._scope_of.clear()

    def unwraps(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether an argument wraps other tensors, so that this operator is seen where it is applied to them."""
        try:
            if not self._wrappers.among(types):
                return False
            grad_enabled = _grad_enabled()
            if current_node() is None:
                if self._recorder.steps.due and grad_enabled:
                    self._on_grad_op()
                asks = grad_enabled and any(_asks(value) for value in (*args, *kwargs.values()))
                self._nodes.outer(_base(func), grad_enabled=grad_enabled, asks_for_grad=asks)
        except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"{func}: {type(error).__name__}")
        return True

    def begin(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Begun | None:
        """Summarise the inputs before the operator runs; None when this call is not recorded."""
        try:
            operator = self._operators.get(func)
            if operator is None:
                operator = self._describe(func)
            if operator is IGNORED:
                return None
            recorder = self._recorder
            frame = sys._getframe(2)
            if frame.f_code is _DISPATCH:  # while our own time is measured, one more frame of ours is in between
                frame = sys._getframe(3)
            if self._wrappers.met and self._wrappers.propagates(frame):
                return None
            node = current_node()
            grad_enabled = _grad_enabled()
            if recorder.steps.due and grad_enabled and node is None and operator.collective is None:
                self._on_grad_op()
                if not self.active:
                    return None
            if recorder.steps.backward_depth or self.collectives.flights.waiting:
                self.collectives.before(frame, node, operator, args)
            place = recorder.sites.place(frame)
            if not self._everything and not self._selected(operator, place):
                return self._leave_out(operator, place, args, kwargs)
            return self._begin(operator, place, node, grad_enabled, (args, kwargs))
        except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"{func}: {type(error).__name__}")
            return None

    def _begin(
        self,
        operator: Operator,
        place: Place,
        node: Any,
        grad_enabled: bool,
        arguments: tuple[tuple[Any, ...], dict[str, Any]],
    ) -> Begun:
        recorder = self._recorder
        record = recorder.sequence
        recorder.sequence = record + 1
        args, kwargs = arguments
        if self._inside_region:
            self.log.forget()  # compiled code between two extern kernels writes unseen
        elif self.collectives.unseen_writes:
            self.log.void()
        if self._dumps is not None:
            self._open_dump(self._dumps, record, operator, place)
        inputs, asks = self.slots.inputs(record, args, kwargs, operator.overwritten)
        if operator.seeded:
            inputs.append(self._generators.slot(kwargs.get("generator"), self._kinds, recorder.definitions))
        flags = 0 if grad_enabled else Flag.NO_GRAD
        if operator.inplace:
            flags |= Flag.INPLACE
        if operator.is_view:
            flags |= Flag.VIEW
        scope = self._scopes.scope
        collective = operator.collective
        slots = tuple(inputs)
        link, node_name, owner = UNLINKED, NO_LINK, None
        if node is None:
            self._nodes.claim(record, base=operator.base, grad_enabled=grad_enabled, asks_for_grad=asks)
            self._originals.add(self._identity(operator, place, scope), record, slots)
        elif (grad_enabled and not self.create_graph) or recorder.sites.recomputes(sys._getframe()):
            flags |= Flag.RECOMPUTE
            self._nodes.claim(record, base=operator.base, grad_enabled=grad_enabled, asks_for_grad=asks)
            link = self._originals.find(self._identity(operator, place, scope), slots)
        else:
            link, node_name, owner = self._backward_link(node)
            if link.record >= 0:
                scope = self._scope_of.get(link.record, scope)
        self._scope_of[record] = scope
        if link.ambiguous:
            flags |= Flag.LINK_AMBIGUOUS
            recorder.gaps[CountedGap.LINK_AMBIGUOUS] += 1
        return Begun(
            id=record,
            operator=operator,
            place=place,
            scope=scope,
            context=recorder.context(in_module=self._scopes.depth > 0),
            parent=self._scopes.parent,
            flags=flags,
            link=link.record,
            node=node_name,
            scalars=self._scalars.of(args if collective is None else collective.hidden(args), kwargs),
            inputs=slots,
            started_ns=recorder.now_ns(),
            owner=owner,
            collective=None if collective is None else self.collectives.describe(record, collective, args),
        )

    def _leave_out(
        self, operator: Operator, place: Place, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Begun | None:
        """A call that is not selected: what it writes is void all the same, and in flight if it is a collective."""
        if operator.collective is None:
            self.slots.void(operator, args, kwargs)
            return None
        record = self.collectives.describe(NOT_RECORDED, operator.collective, args)
        return Begun(NOT_RECORDED, operator, place, 0, -1, -1, 0, -1, -1, -1, (), 0, None, record)

    def raised(self, begun: Begun) -> None:
        """The operator raised: a record without outputs, flagged."""
        begun.flags |= Flag.RAISED
        self._emit(begun, ())

    def end(self, begun: Begun, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Summarise what the operator returned and what it wrote in place."""
        operator = begun.operator
        try:
            if operator.waits:
                self.collectives.flights.wait_tensor(args[0])
            collective = operator.collective
            if collective is None or collective.blocks:
                outputs = self.slots.outputs(begun.id, operator, (args, kwargs), result)
            else:
                outputs, landings = self.slots.launched(begun.id, operator, (args, kwargs), result)
                self.collectives.launched(begun.id, collective, landings, result, _outside(sys._getframe(2)))
            if begun.owner is not None:
                self._accumulated(begun.owner, operator, (args, kwargs), result)
            if operator.shards:
                self.log.void()
        except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"{operator.name}: {type(error).__name__}")
            outputs = ()
        if operator.reads_storage:
            begun.inputs += tuple(self.slots.from_storage(slot) for slot in outputs[:1])
        self._emit(begun, outputs)
        if operator.collective is not None and operator.collective.blocks:
            self.collectives.flights.completed_at_once(begun.id)

    def _accumulated(
        self, owner: Owner, operator: Operator, arguments: tuple[tuple[Any, ...], dict[str, Any]], result: Any
    ) -> None:
        if operator.written:
            self.collectives.accumulated(owner, operator, self.slots.written(operator, *arguments))
        else:
            self.collectives.copied(arguments[0], result)

    def _emit(self, begun: Begun, outputs: tuple[calls.Slot, ...]) -> None:
        recorder = self._recorder
        if begun.id == NOT_RECORDED:
            return
        left = recorder.sequence
        recorder.sequence = left + 1
        if begun.collective is not None:
            recorder.emit(begun.collective)
        recorder.emit(
            calls.Call(
                begun.id,
                left,
                begun.parent,
                begun.operator.function_id,
                begun.place.site,
                begun.place.workload_site,
                begun.scope,
                begun.context,
                recorder.thread,
                begun.flags,
                begun.link,
                begun.node,
                begun.scalars,
                begun.started_ns,
                recorder.now_ns() - begun.started_ns,
                begun.inputs,
                outputs,
            )
        )
        if self.slots.details:
            for detail in self.slots.details:
                recorder.emit(detail)
            self.slots.details.clear()
        if self._dumps is not None:
            self._dumps.close(begun.id)

    def _backward_link(self, node: Any) -> tuple[Link, int, Owner | None]:
        name = node.name()
        if name == ACCUMULATE:
            variable = node.variable
            owner = Owner(self._names.of_parameter(variable), variable.numel())
            return UNLINKED, self._recorder.definitions.name(f"AccumulateGrad:{owner.name}"), owner
        return self._nodes.link(node, name), self._recorder.definitions.name(name), None

    def _identity(self, operator: Operator, place: Place, scope: int) -> tuple[object, ...]:
        """What a call and its recomputation share: a checkpointed block runs again without the modules around it, and
        called from another place."""
        return (self._recorder.definitions.module(scope), operator.function_id, -1 if place.outside else place.site)

    def _open_dump(self, dumps: Dumps, record: int, operator: Operator, place: Place) -> None:
        module = self._recorder.definitions.module(self._scopes.scope)
        if dumps.wants(module=module, file=self._recorder.sites.file(place.site), function=operator.name):
            dumps.open(record)

    def _selected(self, operator: Operator, place: Place) -> bool:
        module = self._recorder.definitions.module(self._scopes.scope)
        return self._recorder.settings.selection.wants(
            module=module, file=self._recorder.sites.file(place.site), function=operator.name
        )

    def _describe(self, func: Any) -> Operator:
        if isinstance(func, torch._ops.OpOverload) and func.namespace in WITHOUT_TENSORS:
            self._operators[func] = IGNORED
            return IGNORED
        name = self._recorder.definitions.function(str(func), Level.OP)
        described = self._operators[func] = describe(func, name)
        return described


_DISPATCH = OpMode.__torch_dispatch__.__code__


def _outside(frame: FrameType) -> FrameType | None:
    return frame.f_back if frame.f_code is _DISPATCH else frame


def _asks(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_asks(item) for item in value)
    return isinstance(value, torch.Tensor) and value.requires_grad


def _base(func: Any) -> str:
    """An operator's name without underscores, as `Operator.base` has it."""
    return func._schema.name.partition("::")[2].replace("_", "").lower() if hasattr(func, "_schema") else ""
