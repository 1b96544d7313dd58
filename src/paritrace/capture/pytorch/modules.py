"""Level `module`: forward hooks on all modules, gradients by hooks on output tensors (CA-10).

The hooks are torch's global ones: hooks on a module itself would switch off fast paths of torch's own modules (N-16),
and full backward hooks crash models with in-place activations (N-09).
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

import msgspec
import torch
from torch.nn.modules import module as torch_module
from torch.utils.hooks import RemovableHandle

from paritrace.capture.pytorch.flatten import tensors
from paritrace.capture.pytorch.full_slots import FullSlots
from paritrace.capture.pytorch.goldens import Goldens
from paritrace.capture.pytorch.internals import is_compiled, watch_gradient, without_function_modes
from paritrace.capture.pytorch.registers import Registers
from paritrace.capture.pytorch.scopes import Entered
from paritrace.capture.pytorch.storages import WriteLog
from paritrace.capture.pytorch.token_rows import RowObserver
from paritrace.capture.pytorch.wrappers import class_name, original_class
from paritrace.capture.recorder import Recorder
from paritrace.evidence import calls
from paritrace.evidence.calls import Flag, Level, OriginKind, Phase
from paritrace.evidence.gaps import CountedGap

_is_compiling = torch.compiler.is_compiling


class RootListener(Protocol):
    """Told when a module is entered from outside any other."""

    def root_entered(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...
    def compiled_region_left(self) -> None: ...
    def other_thread_seen(self) -> None: ...


class _Forward(NamedTuple):
    """What a gradient's record takes from the forward call; `kept`: its slots were kept whole."""

    record: int
    scope: int
    site: int
    kept: bool


class ModuleObserver:
    """Keeps the stack of module calls and, where level `module` is on, records each call."""

    def __init__(
        self, recorder: Recorder, registers: Registers, *, log: WriteLog, root: RootListener, rows: RowObserver
    ) -> None:
        self._recorder = recorder
        self._rows = rows
        self._slots = FullSlots(recorder.definitions, registers, log)
        self._names = registers.names
        self._scopes = registers.scopes
        self._dumps = registers.dumps
        self.goldens = (
            None
            if registers.dumps is None
            else Goldens(recorder, registers.dumps, kinds=registers.kinds, log=log, active=lambda: self.active)
        )
        self._root = root
        self._thread = threading.get_ident()
        self._handles: list[RemovableHandle] = []
        self._filter: object = None
        self.active = False

    def install(self) -> None:
        # Torch tells whoever compiles a module that global hooks fire twice for it; here that is wanted, and ours.
        warnings.filterwarnings("ignore", message=r"Using `torch\.compile\(module\)` when there are global hooks")
        self._filter = warnings.filters[0]
        self._handles = [
            torch_module.register_module_forward_pre_hook(self._entering),
            torch_module.register_module_forward_hook(self._left, with_kwargs=True, always_call=True),
        ]

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._filter in warnings.filters:
            cast(list[object], warnings.filters).remove(self._filter)

    def observe(self, name: str, tensor: torch.Tensor, semantics: str | None = None) -> None:
        """A record of one tensor that the user named: a call that hands it through."""
        recorder = self._recorder
        if not self.active or recorder.levels <= {Level.DIGEST}:
            return
        record = recorder.sequence
        recorder.sequence = record + 1
        place = recorder.sites.place(sys._getframe(1))
        entered = Entered(
            0, record, self._scopes.scope, True, (), (), place.site, place.workload_site, recorder.now_ns()
        )
        inputs: list[calls.Slot] = []
        outputs: list[calls.Slot] = []
        details: list[calls.Detail] = []
        named = f"paritrace.observe({name})"
        self._open_dump(record, self._recorder.definitions.module(self._scopes.scope), place.site, named)
        self._slots.add(tensor, "tensor", (record, "i"), inputs, details)
        self._slots.add(tensor, "out", (record, "o"), outputs, details)
        function = recorder.definitions.function(named, Level.MODULE)
        self._emit(entered, function, Flag(0), (tuple(inputs), tuple(outputs)))
        for detail in details:
            recorder.emit(detail if semantics is None else msgspec.structs.replace(detail, semantics=semantics))

    def _entering(self, module: torch.nn.Module, args: Any) -> None:
        if _is_compiling() or not self.active:
            return
        if threading.get_ident() != self._thread:
            self._recorder.count(CountedGap.THREAD_NOT_COVERED, type(module).__name__)
            self._root.other_thread_seen()
            return
        try:
            with without_function_modes():
                self._enter(module, args, _keyword_arguments(sys._getframe(1)))
        except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"{type(module).__name__}: {type(error).__name__}")

    def _left(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any = None) -> None:
        """A forward ended. When it raised, torch calls global hooks with (module, args, None), whatever they asked."""
        if _is_compiling() or not self.active or threading.get_ident() != self._thread:
            return
        entered = self._scopes.pop(id(module))
        if entered is not None and output is not None and self._rows.active:
            self._rows.left(self._names.of_module(module), entered.scope, entered.record, output)
        kept = entered is not None and entered.golden is not None
        if entered is None or not (entered.recorded or kept):
            if is_compiled(module):
                self._root.compiled_region_left()
            return
        try:
            with without_function_modes():
                if entered.recorded:
                    self._record(module, entered, output)
                if self.goldens is not None and entered.golden is not None:
                    call = entered.record if entered.recorded else -1
                    self.goldens.ended(entered.golden, output, call=call, raised=_raised(output))
        except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"{type(module).__name__}: {type(error).__name__}")

    def _enter(self, module: torch.nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        recorder = self._recorder
        backward = recorder.steps.backward_depth > 0
        name = self._names.of_module(module)
        if self._scopes.depth == 0 and not backward:
            if name is None:
                name = self._names.register_root(module)
            self._root.root_entered(module, args, kwargs)
        if recorder.levels <= {Level.DIGEST}:
            self._scopes.push(Entered(id(module), -1, 0, False, (), (), -1, -1, 0))  # nothing but the depth is needed
            return
        cls = class_name(module)
        if name is None:
            name = f"<{original_class(module).__name__}>"
        scope = self._scopes.open(name, cls, backward=backward)
        place = recorder.sites.place(sys._getframe(2))
        recorded = Level.MODULE in recorder.levels and (
            recorder.settings.selection.everything
            or recorder.settings.selection.wants(module=name, file=recorder.sites.file(place.site), function=cls)
        )
        record = recorder.sequence
        inputs: tuple[calls.Slot, ...] = ()
        details: tuple[calls.Detail, ...] = ()
        golden = None
        if self.goldens is not None and self.goldens.wants(name):
            golden = self.goldens.begins(module, name, cls, (args, kwargs))
        if recorded:
            recorder.sequence = record + 1
            self._open_dump(record, name, place.site, cls, also=golden is not None)
            inputs, details = self._inputs(module, args, kwargs, record)
        places = (place.site, place.workload_site)
        self._scopes.push(
            Entered(id(module), record, scope, recorded, inputs, details, *places, recorder.now_ns(), golden)
        )

    def _open_dump(self, record: int, module: str, site: int, function: str, *, also: bool = False) -> None:
        """Keep the slots of this call whole if `--dump` selects it, or it is a golden one."""
        dumps = self._dumps
        if dumps is not None and (
            dumps.wants(module=module, file=self._recorder.sites.file(site), function=function) or also
        ):
            dumps.open(record)

    def _inputs(
        self, module: torch.nn.Module, args: Any, kwargs: dict[str, Any], record: int
    ) -> tuple[tuple[calls.Slot, ...], tuple[calls.Detail, ...]]:
        slots: list[calls.Slot] = []
        details: list[calls.Detail] = []
        for path, tensor in (*tensors(args, "args"), *tensors(kwargs, "kwargs")):
            self._slots.add(tensor, path, (record, "i"), slots, details)
        for kind, members in (
            (OriginKind.PARAMETER, module.named_parameters(recurse=False)),
            (OriginKind.BUFFER, module.named_buffers(recurse=False)),
        ):
            for name, tensor in members:
                self._slots.add(tensor, name, (record, "i"), slots, details)
                slots[-1] = self._owned(slots[-1], kind, module, name)
        return tuple(slots), tuple(details)

    def _owned(self, slot: calls.Slot, kind: OriginKind, module: torch.nn.Module, name: str) -> calls.Slot:
        """A module's own parameter has its name, also where nothing was seen to make it, as when FSDP gathered it."""
        owner = self._names.of_module(module)
        if owner is None or slot.source != self._slots.unknown:
            return slot
        definitions = self._recorder.definitions
        return msgspec.structs.replace(slot, source=definitions.origin(kind, f"{owner}.{name}" if owner else name))

    def _record(self, module: torch.nn.Module, entered: Entered, output: Any) -> None:
        recorder = self._recorder
        slots: list[calls.Slot] = []
        details: list[calls.Detail] = []
        flags = Flag.RAISED if _raised(output) else Flag(0)
        if recorder.steps.backward_depth:
            flags |= Flag.RECOMPUTE
        compiled = is_compiled(module)
        if compiled:
            flags |= Flag.COMPILED
            recorder.count(CountedGap.NOT_OBSERVABLE_COMPILED, self._names.of_module(module) or type(module).__name__)
            self._root.compiled_region_left()
        for path, tensor in tensors(output, "out"):
            self._slots.add(tensor, path, (entered.record, "o"), slots, details)
        function = recorder.definitions.function(class_name(module), Level.MODULE)
        kept = self._dumps is not None and self._dumps.is_open(entered.record)
        self._emit(entered, function, flags, (entered.inputs, tuple(slots)))
        for detail in (*entered.details, *details):
            recorder.emit(detail)
        if not recorder.steps.backward_depth:
            self._watch_gradients(entered, function, output, kept=kept)

    def _emit(
        self,
        entered: Entered,
        function: int,
        flags: Flag,
        slots: tuple[tuple[calls.Slot, ...], tuple[calls.Slot, ...]],
    ) -> None:
        recorder = self._recorder
        left = recorder.sequence
        recorder.sequence = left + 1
        recorder.emit(
            calls.Call(
                entered.record,
                left,
                self._scopes.parent,
                function,
                entered.site,
                entered.workload_site,
                entered.scope,
                recorder.context(in_module=True),
                recorder.thread,
                int(flags) | (0 if torch.is_grad_enabled() else Flag.NO_GRAD),
                -1,
                -1,
                recorder.definitions.scalars({}),
                entered.started_ns,
                recorder.now_ns() - entered.started_ns,
                *slots,
            )
        )
        if self._dumps is not None:
            self._dumps.close(entered.record)

    def _watch_gradients(self, entered: Entered, function: int, output: Any, *, kept: bool) -> None:
        for path, tensor in tensors(output, "grad"):
            if tensor.requires_grad and not tensor.is_leaf:
                forward = _Forward(entered.record, entered.scope, entered.site, kept)
                watch_gradient(tensor, self._gradient_hook(path, function, forward))

    def _gradient_hook(self, path: str, function: int, forward: _Forward) -> Callable[[torch.Tensor], None]:
        def hook(gradient: torch.Tensor) -> None:
            if self.active and Level.MODULE in self._recorder.levels:
                try:
                    with without_function_modes():
                        self._record_gradient(gradient, path, function, forward)
                except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
                    self._recorder.count(CountedGap.CAPTURE_ERROR, f"gradient {path}: {type(error).__name__}")

        return hook

    def _record_gradient(self, gradient: torch.Tensor, path: str, function: int, forward: _Forward) -> None:
        recorder = self._recorder
        linked, scope, site, kept = forward
        record = recorder.sequence
        recorder.sequence = record + 2
        slots: list[calls.Slot] = []
        details: list[calls.Detail] = []
        if kept and self._dumps is not None:
            self._dumps.open(record)
        self._slots.add(gradient, path, (record, "o"), slots, details)
        now = recorder.now_ns()
        recorder.emit(
            calls.Call(
                record,
                record + 1,
                -1,
                function,
                site,
                site,
                scope,
                recorder.definitions.context(
                    recorder.steps.step, recorder.steps.microbatch, Phase.BACKWARD, recorder.labels
                ),
                recorder.thread,
                0,
                linked,
                recorder.definitions.name("gradient"),
                recorder.definitions.scalars({}),
                now,
                0,
                (),
                tuple(slots),
            )
        )
        if self._dumps is not None:
            self._dumps.close(record)
        for detail in details:
            recorder.emit(detail)


def _raised(output: object) -> bool:
    return output is None and sys.exc_info()[0] is not None


def _keyword_arguments(frame: Any) -> dict[str, Any]:
    """Keyword arguments of the module call: torch hands global pre-hooks positional ones only, so we look."""
    found = frame.f_locals.get("kwargs")
    return found if isinstance(found, dict) else {}
