"""All observers of one session on torch, switched on and off together and in the right order.

Longer than 400 lines: what one observer tells another is said in this place alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from paritrace.capture.own_time import OwnTime
from paritrace.capture.pytorch.allocator import AllocatorObserver, Where, allocator_here
from paritrace.capture.pytorch.backward import BackwardObserver
from paritrace.capture.pytorch.callsites import CallSiteObserver
from paritrace.capture.pytorch.counters import CollectiveCounter
from paritrace.capture.pytorch.exporting import StrictExports
from paritrace.capture.pytorch.flatten import tensors
from paritrace.capture.pytorch.forks import tell_of_forks
from paritrace.capture.pytorch.internals import (
    dispatch_mode_stack,
    enter_below,
    leave_innermost,
    without_function_modes,
)
from paritrace.capture.pytorch.inventory import Inventory
from paritrace.capture.pytorch.modules import ModuleObserver
from paritrace.capture.pytorch.ops import OpMode, OpObserver
from paritrace.capture.pytorch.optimizers import OptimizerObserver, steps_on_stack
from paritrace.capture.pytorch.parts import part_of
from paritrace.capture.pytorch.pipelines import PipelineObserver
from paritrace.capture.pytorch.regions import CompiledRegions
from paritrace.capture.pytorch.registers import Registers
from paritrace.capture.pytorch.replicas import Replicas
from paritrace.capture.pytorch.resizes import ResizeObserver
from paritrace.capture.pytorch.scalers import ScalerObserver
from paritrace.capture.pytorch.token_rows import RowObserver
from paritrace.capture.pytorch.works import WorkObserver
from paritrace.capture.recorder import Recorder
from paritrace.capture.rewriting import probes
from paritrace.capture.rewriting.tree import CallExpression
from paritrace.capture.token_rows import Rows
from paritrace.evidence.calls import Level, OriginKind
from paritrace.evidence.gaps import CountedGap, Gap, ResourceGap


class TorchObserver:
    """Observes the thread it was made on."""

    def __init__(self, recorder: Recorder, expressions: Sequence[CallExpression] | None = None) -> None:
        """`expressions`: the rewritten calls by their number, which may still grow; None where none are."""
        self.not_watched: Gap[ResourceGap] | None = None  # why failed allocations are not recorded; None where they are
        self._recorder = recorder
        self._thread = threading.get_ident()
        registers = self._registers = Registers.of(recorder)
        self._kinds, self._names, self._scopes = registers.kinds, registers.names, registers.scopes
        self._ops = OpObserver(
            recorder, registers, on_grad_op=self._maybe_end_step, on_region=self.compiled_region_left
        )
        self._rows = RowObserver(recorder, registers, log=self._ops.log, here=self._here)
        self._modules = ModuleObserver(recorder, registers, log=self._ops.log, root=self, rows=self._rows)
        self._callsites = (
            None
            if expressions is None
            else CallSiteObserver(recorder, registers, log=self._ops.log, expressions=expressions)
        )
        self._backward = BackwardObserver(recorder, begins=self._backward_begins, ended=self._backward_ended)
        self._optimizers = OptimizerObserver(begins=self._optimizer_begins, ended=self._optimizer_ended)
        self._scalers = ScalerObserver(skipped=self._optimizer_skipped)
        self._pipelines = PipelineObserver(recorder, here=self._here)
        self._inventory = Inventory(recorder, registers)
        self._replicas = Replicas(recorder, registers)
        self._regions = CompiledRegions(self._ops.around_region)
        self._exports = StrictExports(self._unobserved)
        self._works = WorkObserver(self._ops.collectives)
        self._resizes = ResizeObserver(self._storage_resized)
        self._counter = CollectiveCounter(recorder, registers.groups)
        if recorder.own_time is not None:
            self._measure(recorder.own_time)
        self._mode = OpMode(self._ops)
        self._mode_entered = False
        self._mode_below = False
        self._begun_step = -1
        self._live = False
        tell_of_forks(self)

    def _measure(self, own_time: OwnTime) -> None:
        """Take the time of everything that works inside the workload's steps; before any of it is installed."""
        own_time.cover(self._modules, "_enter", "_record", "_record_gradient", "observe")
        if self._modules.goldens is not None:
            own_time.cover(self._modules.goldens, "ended", "gradient")
        if self._callsites is not None:
            own_time.cover(self._callsites, "_begin", "_hand_in", "_hand_in_last", "_return")
        own_time.cover(self._rows, "declare", "observe", "left")
        own_time.cover(self._ops, "begin", "end", "raised", "unwraps", "_begin_region")
        own_time.cover(self._ops.collectives, "work_waited", "waiting_ended", "backward_ended")
        own_time.cover(self._backward, "_start")
        own_time.cover(self._optimizers, "_before", "_after")

    def start(self) -> None:
        """Switch everything on."""
        self._modules.install()
        self._backward.install()
        self._regions.install()
        self._exports.install()
        self._optimizers.install()
        self._scalers.install()
        self._pipelines.install()
        self._guarded(self._counter.begin)
        self._guarded(self._watch_allocator)
        if self._callsites is not None:
            probes.listen(self._callsites.probes())
        self._live = True
        self._set_active(True)

    def stop(self) -> None:
        """End the last step and switch everything off; the workload goes on unobserved."""
        if not self._live:
            return
        self._set_active(False)
        self._live = False
        if self._callsites is not None:
            self._callsites.stop()
        self._close_last_step()
        self._modules.remove()
        self._backward.remove()
        self._regions.remove()
        self._exports.remove()
        self._optimizers.remove()
        self._scalers.remove()
        self._pipelines.remove()
        self._leave_mode()
        self._works.remove()
        self._resizes.remove()
        self._ops.collectives.stop()
        self._ops.log.forget()

    @property
    def reuse(self) -> tuple[int, int]:
        """With `check_reuse`: inherited fingerprints recomputed, and how many were stale."""
        return self._ops.log.reused, self._ops.log.stale

    def name_step(self, step: int) -> None:
        """`paritrace.step(n)`: the user says which step begins; in a forked child or another thread nobody hears."""
        if not self._here():
            return
        steps = self._recorder.steps
        if steps.named or steps.due or steps.backwards or self._begun_step >= 0:
            if step != steps.step or steps.due:
                self._end_step(step)
        else:
            steps.advance(step)
            self._recorder.set_levels("steps")
            self._apply_levels()
        steps.named = True

    def observe(self, name: str, tensor: torch.Tensor, semantics: str | None = None) -> None:
        """`paritrace.observe(name, tensor)`: a module-level record of one tensor, at the user's place."""
        if self._here():
            self._guarded(self._modules.observe, name, tensor, semantics)

    def name_of(self, module: torch.nn.Module) -> str | None:
        """The qualified name of a module of a known root."""
        return self._names.of_module(module)

    @property
    def step(self) -> int:
        """The present step of the workload."""
        return self._recorder.steps.step

    def set_quiet(self, quiet: bool) -> None:
        """See nothing of the calls that a replay makes (CP-26)."""
        if self._live:
            self._set_active(not quiet)

    @contextmanager
    def _unobserved(self) -> Generator[None]:
        """Without hooks or mode of ours on this thread, as if nothing were captured."""
        if not self._here():
            yield
            return
        self._recorder.count(CountedGap.NOT_OBSERVABLE_COMPILED, "torch.export, strict")
        self._set_active(False)
        self._modules.remove()
        self._leave_mode()
        try:
            yield
        finally:
            if self._live:
                self._modules.install()
                self._set_active(True)

    def rows(self, given: dict[str, object]) -> Rows:
        """`paritrace.rows(...)`: which token each row of the next batch is."""
        return self._rows.declare(given)

    def child_after_fork(self) -> None:
        """In a forked child nothing of ours runs (CA-10, N-10)."""
        self._live = False
        self._set_active(False)
        self._ops.collectives.flights.abandon()

    def parent_after_fork(self) -> None:
        if self._live:
            self._recorder.count(CountedGap.FORKED_CHILD_NOT_COVERED, "fork")

    # --- what the observers tell ---------------------------------------------------------------------------------

    def root_entered(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A module was entered from outside any other: perhaps a new step, certainly a batch."""
        self._maybe_end_step()
        self._begin_step()
        self._rows.root_entered()
        if next(iter(module.parameters()), None) is not None:
            self._inventory.model(module)
            self._inventory.batch(args, kwargs)
            self._name_batch(args, kwargs)

    def compiled_region_left(self) -> None:
        """A compiled region may have written anything: nothing is reused across it."""
        self._ops.log.forget()
        self._name_states()

    def other_thread_seen(self) -> None:
        """Another thread runs modules: its calls are not observed, and its autograd nodes share our numbers."""
        self._ops.other_thread_seen()

    def _maybe_end_step(self) -> None:
        if self._recorder.steps.optimizer_depth:
            self._recorder.steps.optimizers_running(steps_on_stack(sys._getframe()))
        if self._recorder.steps.ends_before_forward():
            self._end_step()

    def _end_step(self, to: int | None = None) -> None:
        self._guarded(self._counter.mark)
        self._recorder.end_step(to)
        self._ops.step_ended()
        self._scopes.step_ended()
        self._registers.summaries.step_ended()
        if self._registers.dumps is not None and self._modules.goldens is not None:
            self._registers.dumps.step_ended()
            self._modules.goldens.step_ended()
        self._rows.step_ended()
        if self._callsites is not None:
            self._callsites.count_faults()
        self._apply_levels()

    def _begin_step(self) -> None:
        if self._begun_step == self._recorder.steps.step:
            return
        if self._begun_step < 0:
            self._recorder.set_up_ended()
        self._begun_step = self._recorder.steps.step
        self._guarded(self._registers.meshes.look)
        self._inventory.begin()
        self._guarded(self._replicas.look)
        self._name_states()

    def _backward_begins(self, create_graph: bool) -> None:
        self._maybe_end_step()
        self._guarded(self._begin_step)  # of a step without a module's forward
        self._ops.create_graph = create_graph
        self._recorder.steps.backward_begins()

    def _backward_ended(self, normally: bool) -> None:
        self._recorder.steps.backward_ended()
        self._ops.create_graph = False
        if normally and not self._recorder.steps.backward_depth:
            self._guarded(self._ops.collectives.backward_ended)

    def _optimizer_begins(self, optimizer: torch.optim.Optimizer) -> None:
        if not self._here():
            return
        if self._recorder.steps.optimizer_depth:
            self._recorder.steps.optimizers_running(steps_on_stack(sys._getframe()) - 1)  # without this one
        if self._recorder.steps.ends_before_optimizer(id(optimizer)):
            self._end_step()
        self._scalers.optimizer_begins()
        inside = self._recorder.steps.optimizer_depth > 0
        self._recorder.steps.optimizer_begins()
        # One that another steps, as ZeroRedundancyOptimizer does, has some of its gradients: they count once.
        self._guarded(self._inventory.meet if inside else self._inventory.gradients, optimizer)
        if Level.OP in self._recorder.levels:
            self._guarded(self._name_states)

    def _optimizer_ended(self, optimizer: torch.optim.Optimizer) -> None:
        if self._here():
            self._recorder.steps.optimizer_ended(id(optimizer))
            self._prepare_mode()

    def _optimizer_skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A grad scaler found gradients that are not finite and left the optimizer's step out (CA-3)."""
        if not self._here():
            return
        if self._recorder.steps.ends_before_optimizer(id(optimizer)):
            self._end_step()
        self._recorder.steps.optimizer_skipped(id(optimizer))
        self._guarded(self._inventory.meet, optimizer)
        self._prepare_mode()

    # --- switching -----------------------------------------------------------------------------------------------

    def _here(self) -> bool:
        return self._live and threading.get_ident() == self._thread

    def _guarded(self, action: Any, *args: Any) -> None:
        try:
            with without_function_modes():
                action(*args)
        except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"{action.__name__}: {type(error).__name__}")

    def _watch_allocator(self) -> None:
        """Have failed allocations recorded, where there is an accelerator (RS-12)."""
        allocator = allocator_here()
        if isinstance(allocator, Gap):
            self.not_watched = allocator
            return
        watching = AllocatorObserver(
            allocator,
            where=lambda: Where(self.step, self._recorder.definitions.module(self._scopes.scope)),
            states=self._inventory.named_states,
            record=self._recorder.emit,
        )

        def failed(device: int, requested: int, total: int, free: int) -> None:
            if self._live:
                self._guarded(watching.failed, device, requested, total, free)

        allocator.attach(failed)

    def _storage_resized(self, storage: torch.UntypedStorage, before: int) -> None:
        if self._here():
            self._guarded(self._ops.log.resized, storage, before)

    def _close_last_step(self) -> None:
        steps = self._recorder.steps
        ended = steps.due or bool(steps.backwards) or self._begun_step == steps.step
        if not ended:
            return
        finished = steps.due
        self._guarded(self._counter.mark)
        self._recorder.end_step()
        if finished:
            self._guarded(self._inventory.begin)  # what the last step left: weights+1

    def _set_active(self, active: bool) -> None:
        self._modules.active = active
        self._backward.active = active
        if self._callsites is not None:
            self._callsites.active = active
        self._ops.active = False
        if active:
            self._apply_levels()

    def _apply_levels(self) -> None:
        self._ops.active = self._live and Level.OP in self._recorder.levels
        if self._ops.active or (self._live and self._ops.perturbing is not None):
            self._enter_mode()
        else:
            self._leave_mode()
            self._ops.collectives.stop()

    def _prepare_mode(self) -> None:
        """The next step may be captured from its first operator on, before any hook of ours is called again."""
        recorder = self._recorder
        if Level.OP in recorder.plan.observed(recorder.steps.step + 1) and self._here():
            self._enter_mode()
            self._ops.active = True

    def _enter_mode(self) -> None:
        """Enter the mode; under those of the workload, whose leaving would take ours for theirs otherwise."""
        if self._mode_entered:
            return
        self._works.install()
        self._resizes.install()
        self._mode_below = bool(dispatch_mode_stack())
        if self._mode_below:
            enter_below(self._mode)
        else:
            self._mode.__enter__()
        self._mode_entered = True

    def _leave_mode(self) -> None:
        """Leave the mode if it is the innermost; under a mode of the user it stays, inactive."""
        if self._mode_entered and threading.get_ident() == self._thread:
            stack = dispatch_mode_stack()
            if stack and stack[-1] is self._mode:
                if self._mode_below:
                    leave_innermost()
                else:
                    self._mode.__exit__(None, None, None)
                self._mode_entered = False

    def _name_states(self) -> None:
        """The origins of slots; level `digest` has no slots."""
        if self._recorder.levels <= {Level.DIGEST}:
            return
        for kind, name, tensor in self._inventory.named_states():
            self._name(kind, name, tensor)

    def _name_batch(self, args: Any, kwargs: Any) -> None:
        for path, tensor in (*tensors(args, "args"), *tensors(kwargs, "kwargs")):
            self._name(OriginKind.BATCH, path, tensor)

    def _name(self, kind: OriginKind, name: str, tensor: torch.Tensor) -> None:
        known = self._kinds.of(tensor)
        if known.readable:
            self._ops.log.name(part_of(tensor), known, self._recorder.definitions.origin(kind, name))
