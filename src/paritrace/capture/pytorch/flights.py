"""Collectives between dispatch and completion: what shows that one has completed, and what it left behind (CA-31).

A work is known by the address of torch's object, which is all that the dispatcher and `Work.wait` have in common. It
may be handed out again once the work is gone, so an address speaks for the last work that was dispatched with it.
Tensors are known by weak references to their storages (CA-34); nothing here waits, or asks a work anything.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from paritrace.capture.pytorch.dumps import Dumps
from paritrace.capture.pytorch.internals import free_weak_storage, storage_behind, storage_id, weak_storage
from paritrace.capture.pytorch.kinds import KnownKind
from paritrace.capture.pytorch.memory import RELEASED, fingerprint_in_memory_order
from paritrace.capture.pytorch.storages import IN_FLIGHT, Span, WriteLog
from paritrace.capture.pytorch.summarising import Summarising
from paritrace.capture.recorder import Recorder
from paritrace.evidence import calls
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap

NOT_RECORDED = -1  # a call that --select leaves out: what it writes is in flight all the same
NO_WORK = 0
_GUARD = -1
_VALUE_OFFSET = 16  # of the C++ pointer in an instance of pybind11, behind the head of every Python object
_USED_MAP = "int32"  # the reducer's only other collective sums which parameters were used


@dataclass(frozen=True, slots=True)
class Landing:
    """One tensor that a collective writes. `index`: of the output slot, `_GUARD` for memory that only must not be read.

    `gap` is why there is nothing to read, and then the rest says nothing.
    """

    index: int
    identity: int
    weak: int
    span: Span
    kind: KnownKind | None
    gap: Gap[CaptureGap] | None = None


@dataclass(slots=True)
class Flight:
    """A collective that has not completed. `reducer`: DDP's reducer waits for it before `backward` returns."""

    serial: int
    call: int
    operation: str
    reducer: bool
    step: int
    landings: tuple[Landing, ...]


class Flights:
    """All collectives of this session that have not been seen to complete."""

    def __init__(
        self, recorder: Recorder, *, log: WriteLog, summaries: Summarising | None, dumps: Dumps | None = None
    ) -> None:
        self._recorder = recorder
        self._log = log
        self._summaries = summaries
        self._dumps = dumps
        self._flying: dict[int, Flight] = {}
        self._by_work: dict[int, Flight] = {}
        self._by_storage: dict[int, Flight] = {}
        self._returned_to: dict[int, Flight] = {}  # by each storage that C++ comes back to after it has waited
        self._serial = 0
        self.waiting = 0  # functions of torch being run that wait for what they launch

    def landing(self, tensor: torch.Tensor, kind: KnownKind, *, call: int, index: int) -> Landing:
        """A collective has begun to write this tensor."""
        if not kind.readable:
            return Landing(index, 0, 0, (0, 0), None, kind.geometry.gap or Gap(CaptureGap.NO_DATA))
        span = self._log.launched(tensor, kind, by=(call, index))
        return Landing(index, storage_id(tensor), weak_storage(tensor), span, kind)

    def launch(
        self, call: int, *, operation: str, landings: Iterable[Landing], work: object, guard: int, reducer: bool
    ) -> None:
        """A collective was dispatched; `work` is what it returned, `guard` a weak reference to its bucket's storage."""
        guarding = self._guarding(guard) if guard else None
        landed = [*landings] if guarding is None else [*landings, guarding]
        self._serial += 1
        flight = Flight(self._serial, call, operation, reducer, self._recorder.steps.step, tuple(landed))
        self._flying[flight.serial] = flight
        address = _work_address(work)
        if address != NO_WORK:
            self._by_work[address] = flight
        for landing in flight.landings:
            if landing.weak:
                (self._returned_to if reducer or self.waiting else self._by_storage)[landing.identity] = flight

    def completed_at_once(self, call: int) -> None:
        """A collective without a work has returned: it has completed."""
        if call != NOT_RECORDED:
            self._recorder.emit(calls.Completed(call, "wait", self._recorder.now_ns(), ()))

    def waited(self, work: object) -> None:
        """`Work.wait` has returned."""
        if self._by_work:
            flight = self._by_work.pop(_address(work), None)
            if flight is not None:
                self._complete(flight, "wait")

    def wait_tensor(self, tensor: torch.Tensor) -> None:
        """`wait_tensor` has returned this tensor."""
        flight = self._by_storage.get(storage_id(tensor)) if self._by_storage else None
        if flight is not None:
            self._complete(flight, "wait_tensor")

    @property
    def next_serial(self) -> int:
        """What to give `finished_since` later."""
        return self._serial + 1

    def finished_since(self, serial: int) -> None:
        """A function of torch that waits for all it launches has returned."""
        for flight in [flight for number, flight in self._flying.items() if number >= serial]:
            self._complete(flight, "wait")

    @property
    def awaits_return(self) -> bool:
        """Whether C++ that waits unseen would show it by what it touches next."""
        return bool(self._returned_to)

    def touched(self, tensors: Iterable[object]) -> None:
        """C++ that waits for what it launches handles these tensors: it has waited for what was written into them."""
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor):
                flight = self._returned_to.get(storage_id(tensor))
                if flight is not None:
                    self._complete(flight, "backward" if flight.reducer else "wait")

    def backward_ended(self) -> None:
        """A backward has returned: if the reducer has waited for its buckets, it has for its map of used parameters."""
        left = list({flight.serial: flight for flight in self._returned_to.values() if flight.reducer}.values())
        if all(_is_used_map(flight) for flight in left):
            for flight in left:
                self._complete(flight, "backward")

    def drop(self) -> None:
        """Level `op` ends, or the session: what was not seen to complete never will be."""
        for flight in self._flying.values():
            self._forget(flight)
            self._recorder.count(CountedGap.NOT_OBSERVABLE_IN_FLIGHT, flight.operation)
        self._flying.clear()
        self.abandon()

    def abandon(self) -> None:
        """In a forked child nobody completes anything."""
        self._by_work.clear()
        self._by_storage.clear()
        self._returned_to.clear()

    def step_ended(self) -> None:
        """A collective of an earlier step whose results are gone by now cannot be seen to complete any more."""
        step = self._recorder.steps.step
        for flight in [flight for flight in self._flying.values() if flight.step < step - 1]:
            if all(landing.weak and storage_behind(landing.weak) is None for landing in flight.landings):
                self._take_off(flight)
                self._forget(flight)
                self._recorder.count(CountedGap.NOT_OBSERVABLE_IN_FLIGHT, flight.operation)

    def _guarding(self, weak: int) -> Landing | None:
        """Memory that only must not be read; None where it is gone, and nobody can write it any more."""
        storage = storage_behind(weak)
        if storage is None:
            return None
        identity, span = self._log.guarded(storage)
        return Landing(_GUARD, identity, storage._weak_ref(), span, None)

    def _complete(self, flight: Flight, by: str) -> None:
        self._take_off(flight)
        details: list[calls.Detail] = []
        bits = [self._land(flight, landing, details) for landing in flight.landings]
        if flight.call == NOT_RECORDED:
            return
        outputs = tuple(value for landing, value in zip(flight.landings, bits, strict=True) if landing.index != _GUARD)
        self._recorder.emit(calls.Completed(flight.call, by, self._recorder.now_ns(), outputs))
        for detail in details:
            self._recorder.emit(detail)

    def _take_off(self, flight: Flight) -> None:
        self._flying.pop(flight.serial, None)
        for register in (self._by_work, self._by_storage, self._returned_to):
            for key in [key for key, other in register.items() if other is flight]:
                del register[key]

    def _land(self, flight: Flight, landing: Landing, details: list[calls.Detail]) -> str | Gap[CaptureGap]:
        if landing.gap is not None:
            return landing.gap
        alone = self._log.landed(landing.identity, landing.span, by=(flight.call, max(landing.index, 0)))
        storage = storage_behind(landing.weak)
        free_weak_storage(landing.weak)
        kind = landing.kind
        if not alone:
            return IN_FLIGHT
        if storage is None or kind is None or not _holds(storage, landing.span):
            return RELEASED
        address = landing.span[0]
        bits = fingerprint_in_memory_order(address, kind.geometry)
        self._log.known(landing.identity, address, kind, bits)
        if self._dumps is not None:
            self._dumps.landed(flight.call, landing.index, address=address, kind=kind)
        if self._summaries is not None and flight.call != NOT_RECORDED:
            details.append(self._summaries.detail_at(address, kind, call=flight.call, side="o", slot=landing.index)[0])
        return bits

    def _forget(self, flight: Flight) -> None:
        for landing in flight.landings:
            if landing.weak:
                self._log.abandoned(landing.identity, landing.span)
                free_weak_storage(landing.weak)


def _holds(storage: Any, span: Span) -> bool:
    """Whether the storage still lies where the collective wrote; it may have been resized since."""
    begin = storage.data_ptr()
    return span[0] == span[1] or (begin <= span[0] and span[1] <= begin + storage.nbytes())


def _is_used_map(flight: Flight) -> bool:
    return all(landing.kind is not None and landing.kind.geometry.dtype == _USED_MAP for landing in flight.landings)


def _work_address(result: object) -> int:
    """Address of the work among what an operator returned; `NO_WORK` where it returned none."""
    for item in result if isinstance(result, (list, tuple)) else (result,):
        if isinstance(item, torch.ScriptObject):
            unbox: Callable[[Any], object] = vars(torch._C)["_distributed_c10d"].Work.unbox
            return _address(unbox(item))
    return NO_WORK


def _address(work: object) -> int:
    return ctypes.c_size_t.from_address(id(work) + _VALUE_OFFSET).value
