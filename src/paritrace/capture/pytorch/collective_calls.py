"""What level `op` records of collectives beside their calls: what they are and write, when they complete (CA-31)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from enum import Enum
from types import FrameType
from typing import Any, NamedTuple

import torch

from paritrace.capture.pytorch.buckets import NO_GUARD, Buckets
from paritrace.capture.pytorch.collectives import CollectiveFacts
from paritrace.capture.pytorch.flights import Flights, Landing
from paritrace.capture.pytorch.internals import storage_id
from paritrace.capture.pytorch.operators import Operator
from paritrace.capture.pytorch.registers import Registers
from paritrace.capture.pytorch.storages import WriteLog
from paritrace.capture.pytorch.works import BY_OTHERS, Launch, from_engine, from_waiting, launch_of
from paritrace.capture.recorder import Recorder
from paritrace.evidence.distributed import Collective
from paritrace.evidence.gaps import CountedGap

_VIEWS = "asstrided"


class Owner(NamedTuple):
    """The parameter that an `AccumulateGrad` node accumulates for."""

    name: str
    numel: int


class Futures(Enum):
    """Whether functions chained to a work's future may be writing in threads that nobody observes."""

    NONE = 0
    OF_BACKWARD = 1  # DDP's reducer waits for them before backward returns
    OF_STEP = 2


class CollectiveCalls:
    """State of one session's collectives. Hears of works as a `WorkListener`."""

    def __init__(self, recorder: Recorder, registers: Registers, *, log: WriteLog) -> None:
        self._recorder = recorder
        self._groups = registers.groups
        self._thread = threading.get_ident()
        self._ordinals: Counter[int] = Counter()
        self._buckets = Buckets()
        self._futures = Futures.NONE
        self.unseen_writes = False  # whether anything may be written unseen right now
        self.flights = Flights(
            recorder,
            log=log,
            summaries=registers.summaries if recorder.settings.statistics else None,
            dumps=registers.dumps,
        )

    def describe(self, call: int, facts: CollectiveFacts, args: tuple[Any, ...]) -> Collective:
        """The record of a collective about to be dispatched."""
        group = self._groups.of(args[facts.group])
        ordinal = self._ordinals[group]
        self._ordinals[group] = ordinal + 1
        ranks = self._groups[group].ranks if group >= 0 else ()
        return Collective(
            call,
            group,
            facts.operation,
            ordinal,
            facts.reduction(args),
            _global(ranks, args, facts.root),
            _global(ranks, args, facts.peer),
            facts.is_asynchronous(args),
            self._parameters(args),
        )

    def before(self, frame: FrameType, node: object, operator: Operator, args: tuple[Any, ...]) -> None:
        """An operator is about to run: C++ that comes back to what its collectives wrote has waited for them.

        DDP's reducer does so outside any node; in a backward inside another (a reentrant checkpoint) the outer one's
        node stands, and the views it makes of a bucket tell.
        """
        if not self.flights.awaits_return:
            return
        if from_waiting(frame) or ((node is None or operator.base == _VIEWS) and from_engine(frame)):
            self.flights.touched(args)

    def launched(
        self,
        call: int,
        facts: CollectiveFacts,
        landings: list[tuple[torch.Tensor, Landing]],
        result: object,
        frame: FrameType | None,
    ) -> None:
        """A collective was dispatched: it is in flight from now on."""
        launch = launch_of(frame) if self._recorder.steps.backward_depth else BY_OTHERS
        self.flights.launch(
            call,
            operation=facts.operation,
            landings=[landing for _, landing in landings],
            work=result,
            guard=self._guard(launch, landings),
            reducer=launch.reducer,
        )

    def _guard(self, launch: Launch, landings: list[tuple[torch.Tensor, Landing]]) -> int:
        """The bucket that is written, by whatever a hook chains to its collective, though the collective does not."""
        if launch.bucket is not None:
            buffer: torch.Tensor = launch.bucket.buffer()
            own = any(storage_id(tensor) == storage_id(buffer) for tensor, _ in landings)
            return NO_GUARD if own else self._buckets.known(buffer)
        guards = {guard for tensor, _ in landings if (guard := self._buckets.guard(tensor)) != NO_GUARD}
        return guards.pop() if len(guards) == 1 else NO_GUARD

    def accumulated(self, owner: Owner, operator: Operator, written: Iterable[torch.Tensor]) -> None:
        """A call under a parameter's `AccumulateGrad` node has written these."""
        self._buckets.accumulated(owner.name, owner.numel, operator.base, written)

    def copied(self, args: tuple[Any, ...], result: object) -> None:
        """A call under such a node has written nothing in place."""
        if args:
            self._buckets.copied(args[0], result)

    def backward_ended(self) -> None:
        """The outermost backward has returned normally."""
        self.flights.backward_ended()
        if self._futures is Futures.OF_BACKWARD:
            self._set_futures(Futures.NONE)

    def step_ended(self) -> None:
        self._set_futures(Futures.NONE)
        self._buckets.step_ended()
        self.flights.step_ended()

    def stop(self) -> None:
        """Level `op` ends, or the session."""
        self.flights.drop()
        self._buckets.forget()

    # --- what works tell -----------------------------------------------------------------------------------------

    def work_waited(self, work: object) -> None:
        if threading.get_ident() == self._thread:
            try:
                self.flights.waited(work)
            except Exception as error:  # noqa: BLE001  a fault of ours is a gap, never the workload's (P6)
                self._recorder.count(CountedGap.CAPTURE_ERROR, f"wait: {type(error).__name__}")

    def future_taken(self) -> None:
        if threading.get_ident() == self._thread and self._futures is not Futures.OF_STEP:
            backward = self._recorder.steps.backward_depth > 0
            self._set_futures(Futures.OF_BACKWARD if backward else Futures.OF_STEP)

    def waiting_begins(self) -> int:
        if threading.get_ident() == self._thread:
            self.flights.waiting += 1
        return self.flights.next_serial

    def waiting_ended(self, serial: int, normally: bool) -> None:
        if threading.get_ident() == self._thread:
            self.flights.waiting -= 1
            try:
                if normally:
                    self.flights.finished_since(serial)
            except Exception as error:  # noqa: BLE001  a fault of ours is a gap, never the workload's (P6)
                self._recorder.count(CountedGap.CAPTURE_ERROR, f"wait: {type(error).__name__}")

    def _set_futures(self, futures: Futures) -> None:
        self._futures = futures
        self.unseen_writes = futures is not Futures.NONE

    def _parameters(self, args: tuple[Any, ...]) -> tuple[str, ...]:
        first = args[0] if args else None
        tensors = first if isinstance(first, (list, tuple)) else (first,)
        found: list[str] = []
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor):
                found += self._buckets.parameters(tensor)
        return tuple(found)


def _global(ranks: tuple[int, ...], args: tuple[Any, ...], position: int) -> int:
    """The global rank of a rank within the group; -1 where there is none or the ranks are not known."""
    if position < 0 or position >= len(args) or not isinstance(args[position], int):
        return -1
    inner = int(args[position])
    return ranks[inner] if 0 <= inner < len(ranks) else -1
