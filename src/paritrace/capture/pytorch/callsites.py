"""Level `callsite`: a record of each call expression of the rewritten files that carries tensors (CA-2, CA-10).

A call that is being put together is known by its frame and its number: generators and coroutines are left in the
middle of one. From its last argument to its result it is on the stack of calls being made, as its frame is on the
interpreter's; one whose frame is not was left by an exception. Nothing of the workload is held between the probes:
inputs are summarised as they are handed in (CA-34, CA-35).
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import msgspec
import torch

from paritrace.capture.context_variables import ContextVariables
from paritrace.capture.pytorch.callees import Callee, callee_of
from paritrace.capture.pytorch.flatten import tensors
from paritrace.capture.pytorch.full_slots import FullSlots
from paritrace.capture.pytorch.internals import without_function_modes
from paritrace.capture.pytorch.parts import part_of
from paritrace.capture.pytorch.registers import Registers
from paritrace.capture.pytorch.storages import UNINITIALISED, WriteLog
from paritrace.capture.recorder import Recorder
from paritrace.capture.rewriting.probes import Probes
from paritrace.capture.rewriting.tree import CallExpression
from paritrace.capture.sites import Place
from paritrace.evidence import calls
from paritrace.evidence.calls import Flag, Level, Phase
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap

_is_compiling = torch.compiler.is_compiling
_PLAIN = frozenset({int, float, str, bytes, bool, type(None), complex, slice, range, type(...)})
_OUT = "kwargs.out"
_FIRST = "args[0]"
_UNKNOWN_RECORD = -1  # until the call begins; details are given the right one when its row is written


@dataclass(slots=True)
class _Pending:
    """A call of a frame, from `code` at an instruction of it. Holds no tensor and no frame.

    `parent`, `scope`, `context` and `recomputes` are of the moment at which it is entered, as `record` is. `opens`:
    where a step is over, the next one, which a forward inside the call may open; else -1.
    """

    number: int
    frame: int
    code: CodeType
    instruction: int
    callee: str
    writes_first: bool
    allocates: bool
    record: int = _UNKNOWN_RECORD
    scalars: int = 0
    parent: int = -1
    scope: int = 0
    context: int = -1
    opens: int = -1
    recomputes: bool = False
    started_ns: int = 0
    slots: list[calls.Slot] = field(default_factory=list[calls.Slot])
    details: list[calls.Detail] = field(default_factory=list[calls.Detail])


class CallSiteObserver:
    """Observes rewritten code on the thread it was made on."""

    def __init__(
        self, recorder: Recorder, registers: Registers, *, log: WriteLog, expressions: Sequence[CallExpression]
    ) -> None:
        self._recorder = recorder
        self._scopes = registers.scopes
        self._kinds = registers.kinds
        self._log = log
        self._slots = FullSlots(recorder.definitions, registers, log)
        self._expressions = expressions
        self._unread = None if recorder.settings.callsite_values else Gap(CaptureGap.NOT_COLLECTED, "discover")
        plan = recorder.settings.plan
        self._variables = ContextVariables(() if plan is None else plan.context_vars, recorder.sites.below_root)
        self._thread = threading.get_ident()
        self._waiting: dict[int, list[_Pending]] = {}  # by the frame's identity, which dead ones leave to others
        self._entered: list[_Pending] = []
        self._faults: list[type[BaseException]] = []  # counted later: at the limit of recursion nothing can be called
        self._told_threads: set[int] = set()
        self._busy = False
        self.active = False

    def probes(self) -> Probes:
        """The functions for rewritten code. What the compiler traces sees nothing but the value handed through."""

        def function(number: int, value: Any) -> Any:
            try:
                if not _is_compiling() and self._is_observed():
                    self._quietly(self._begin, sys._getframe(1), number, value)
            except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
                self._faults.append(type(error))
            return value

        def argument(number: int, label: str | int, value: Any) -> Any:
            try:
                if type(value) not in _PLAIN and not _is_compiling() and self._is_observed():
                    self._quietly(self._hand_in, sys._getframe(1), number, label, value)
            except Exception as error:  # noqa: BLE001
                self._faults.append(type(error))
            return value

        return Probes(function, argument, self._last_argument_probe(), self._result_probe())

    def _last_argument_probe(self) -> Callable[[int, str | int, Any], Any]:
        def last_argument(number: int, label: str | int, value: Any) -> Any:
            try:
                if not _is_compiling() and self._is_observed():
                    self._quietly(self._hand_in_last, sys._getframe(1), number, label, value)
            except Exception as error:  # noqa: BLE001
                self._faults.append(type(error))
            return value

        return last_argument

    def _result_probe(self) -> Callable[[int, Any], Any]:
        def result(number: int, value: Any) -> Any:
            try:
                if not _is_compiling() and self.active:
                    if self._is_elsewhere():
                        self._tell_thread(value)
                    elif not self._busy:
                        self._quietly(self._return, sys._getframe(1), number, value)
            except Exception as error:  # noqa: BLE001
                self._faults.append(type(error))
            return value

        return result

    def _quietly(self, action: Callable[..., None], *args: Any) -> None:
        """What looking at a value makes rewritten code do is not observed."""
        self._busy = True
        try:
            with without_function_modes():
                action(*args)
        finally:
            self._busy = False

    def stop(self) -> None:
        """Observe no more."""
        self.active = False
        self._settle(sys._getframe())
        self._entered.clear()
        self._waiting.clear()
        self.count_faults()

    def count_faults(self) -> None:
        """Count what failed in the probes since the last time."""
        failed, self._faults = self._faults, []
        for name, number in Counter(one.__name__ for one in failed).items():
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"call expression: {name}", number=number)

    # --- what the probes tell ----------------------------------------------------------------------------------------

    def _begin(self, frame: FrameType, number: int, function: Any) -> None:
        waiting = self._waiting.setdefault(id(frame), [])
        expression = self._expressions[number]
        while waiting and (waiting[-1].number not in expression.around or waiting[-1].code is not frame.f_code):
            waiting.pop()
        self._settle(frame)
        callee = callee_of(function)
        writes_first = callee.writes and callee.receiver is None
        at = (id(frame), frame.f_code, frame.f_lasti)
        pending = _Pending(number, *at, callee.name, writes_first, callee.allocates)
        waiting.append(pending)
        if callee.receiver is not None:
            self._receive(pending, callee.receiver, callee)
        if not expression.has_arguments:
            self._enter(pending, frame)

    def _hand_in(self, frame: FrameType, number: int, label: str | int, value: Any) -> None:
        pending = self._made_by(frame, number)
        if pending is not None:
            self._take(pending, label, value)

    def _hand_in_last(self, frame: FrameType, number: int, label: str | int, value: Any) -> None:
        pending = self._made_by(frame, number)
        if pending is not None:
            self._take(pending, label, value)
            self._enter(pending, frame)

    def _return(self, frame: FrameType, number: int, value: Any) -> None:
        """A call that began where the level was on is recorded also where it is off by now."""
        pending = self._made_by(frame, number)
        if pending is None:
            return
        waiting = self._waiting[id(frame)]
        waiting.pop()
        if not waiting:
            del self._waiting[id(frame)]
        if all(one is not pending for one in reversed(self._entered)):
            return  # of a frame that is gone, whose identity this one has
        while self._entered[-1] is not pending:
            self._raised(self._entered.pop())
        self._entered.pop()
        self._record(pending, value, frame)

    def _settle(self, frame: FrameType) -> None:
        """Find the calls that an exception has left: `frame` runs, and the frame that made them does not call it."""
        while self._entered:
            last = self._entered[-1]
            caller = frame.f_back
            while caller is not None and (id(caller) != last.frame or caller.f_code is not last.code):
                caller = caller.f_back
            if caller is not None:
                return
            self._raised(self._entered.pop())

    # --- the call ----------------------------------------------------------------------------------------------------

    def _receive(self, pending: _Pending, receiver: torch.Tensor, callee: Callee) -> None:
        self._add(pending, receiver, "self", overwritten=callee.overwrites)
        if callee.writes:
            self._written(receiver)

    def _take(self, pending: _Pending, label: str | int, value: Any) -> None:
        """Summarise the tensors of one argument. A starred one may be an iterator, which is not to be read."""
        if type(value) in _PLAIN:
            return
        if isinstance(label, int):
            if type(value) not in (list, tuple):
                return
            found = [pair for i, item in enumerate(value) for pair in tensors(item, f"args[{label + i}]")]
        else:
            found = list(tensors(value, label))
        overwritten = label == _OUT
        for path, tensor in found:
            self._add(pending, tensor, path, overwritten=overwritten)
            if overwritten or (pending.writes_first and label == _FIRST):
                self._written(tensor)

    def _add(self, pending: _Pending, tensor: torch.Tensor, path: str, *, overwritten: bool) -> None:
        kind = self._kinds.of(tensor)
        unread = overwritten or (kind.readable and self._log.unwritten(part_of(tensor), kind))
        where = (_UNKNOWN_RECORD, "i")
        gap = UNINITIALISED if unread else self._unread
        self._slots.add(tensor, path, where, pending.slots, pending.details, gap=gap)

    def _written(self, tensor: torch.Tensor) -> None:
        """The call will write all that this tensor covers; operators tell so themselves where they are watched."""
        kind = self._kinds.of(tensor)
        if kind.readable and Level.OP not in self._recorder.levels:
            self._log.written(part_of(tensor), kind)

    def _enter(self, pending: _Pending, frame: FrameType) -> None:
        recorder = self._recorder
        pending.recomputes = bool(recorder.steps.backward_depth) and recorder.sites.recomputes(frame)
        pending.scalars = recorder.definitions.scalars(self._variables.of(frame))
        pending.record = recorder.sequence
        recorder.sequence += 1
        pending.parent, pending.scope = self._scopes.parent, self._scopes.scope
        pending.context = recorder.context(in_module=self._scopes.depth > 0)
        if recorder.steps.due:
            pending.opens = recorder.steps.step + 1
        pending.started_ns = recorder.now_ns()
        self._entered.append(pending)

    def _record(self, pending: _Pending, value: Any, frame: FrameType) -> None:
        outputs: list[calls.Slot] = []
        watched = Level.OP in self._recorder.levels
        for path, tensor in tensors(value, "out"):
            kind = self._kinds.of(tensor)
            if kind.readable and not watched:
                by = (pending.record, len(outputs))
                self._log.made(part_of(tensor), kind, by=by, uninitialised=pending.allocates)
            unread = kind.readable and self._log.unwritten(part_of(tensor), kind)
            where = (pending.record, "o")
            gap = UNINITIALISED if unread else self._unread
            self._slots.add(tensor, path, where, outputs, pending.details, gap=gap)
        if outputs or pending.slots:
            self._emit(pending, outputs, Flag(0), self._recorder.sites.place(frame))

    def _raised(self, pending: _Pending) -> None:
        """An exception left this call."""
        if pending.slots:
            place = self._recorder.sites.place_in(pending.code, pending.instruction)
            self._emit(pending, (), Flag.RAISED, place)

    def _emit(self, pending: _Pending, outputs: Sequence[calls.Slot], flags: Flag, place: Place) -> None:
        recorder = self._recorder
        if not recorder.settings.selection.everything and not recorder.settings.selection.wants(
            module=recorder.definitions.module(pending.scope),
            file=recorder.sites.file(place.site),
            function=pending.callee,
        ):
            return
        left = recorder.sequence
        recorder.sequence = left + 1
        recorder.emit(
            calls.Call(
                pending.record,
                left,
                pending.parent,
                recorder.definitions.function(pending.callee, Level.CALLSITE),
                place.site,
                place.workload_site,
                pending.scope,
                self._context(pending),
                recorder.thread,
                int(flags)
                | (Flag.RECOMPUTE if pending.recomputes else 0)
                | (0 if torch.is_grad_enabled() else Flag.NO_GRAD),
                -1,
                -1,
                pending.scalars,
                pending.started_ns,
                recorder.now_ns() - pending.started_ns,
                tuple(pending.slots),
                tuple(outputs),
            )
        )
        for detail in pending.details:
            recorder.emit(msgspec.structs.replace(detail, call=pending.record))

    def _context(self, pending: _Pending) -> int:
        """The context of a call; the one whose forward opens a step belongs to that step."""
        recorder = self._recorder
        if pending.opens < 0 or recorder.steps.step < pending.opens:
            return pending.context
        return recorder.definitions.context(pending.opens, 0, Phase.FORWARD, recorder.labels)

    # --- where we are ----------------------------------------------------------------------------------------------

    def _is_observed(self) -> bool:
        return self.active and not self._busy and Level.CALLSITE in self._recorder.levels and not self._is_elsewhere()

    def _is_elsewhere(self) -> bool:
        """Whether another thread runs, or a greenlet, whose frames are not called by those of the thread itself."""
        if threading.get_ident() != self._thread:
            return True
        greenlets: Any = sys.modules.get("greenlet")
        return greenlets is not None and greenlets.getcurrent().parent is not None

    def _made_by(self, frame: FrameType, number: int) -> _Pending | None:
        """The call of this number that the frame puts together; what stands above it came to nothing."""
        waiting = self._waiting.get(id(frame))
        if not waiting or all(one.number != number for one in waiting):
            return None
        while waiting[-1].number != number:
            waiting.pop()
        return waiting[-1]

    def _tell_thread(self, value: Any) -> None:
        thread = threading.get_ident()
        if issubclass(type(value), torch.Tensor) and thread not in self._told_threads:
            self._told_threads.add(thread)
            what = "call expressions" if thread != self._thread else "call expressions of greenlets"
            self._recorder.count(CountedGap.THREAD_NOT_COVERED, what)
