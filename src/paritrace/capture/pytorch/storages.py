"""Our own write log: who wrote a storage last, and which fingerprints still hold (CA-27, CA-32, CA-35).

A storage is known by the address of its `StorageImpl`; a weak reference is held, so that within one step this address
cannot come to mean another storage. The tensor's data is not kept alive by it (CA-34).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from paritrace.capture.pytorch.internals import free_weak_storage, storage_id, weak_storage
from paritrace.capture.pytorch.kinds import KnownKind
from paritrace.capture.pytorch.memory import RELEASED, fingerprint_in_memory_order, holds_bytes
from paritrace.evidence.calls import How
from paritrace.evidence.gaps import CaptureGap, Gap

UNINITIALISED = Gap(CaptureGap.UNINITIALISED)
IN_FLIGHT = Gap(CaptureGap.IN_FLIGHT)
MAX_TRACKED_BYTES = 1 << 28  # a half-written buffer beyond 256 MiB stays a gap instead of costing as much memory again


Span = tuple[int, int]  # addresses, half open


class Entry:
    """What is known of one storage since the step began."""

    __slots__ = ("bits", "flights", "origins", "producers", "unwritten", "weak", "writer")

    def __init__(self, weak: int) -> None:
        self.weak = weak
        self.writer: tuple[int, int] | None = None
        self.bits: dict[tuple[int, tuple[object, ...]], str] = {}
        self.producers: dict[tuple[int, tuple[object, ...]], tuple[int, int]] = {}
        self.origins: dict[tuple[int, tuple[object, ...]], int] = {}
        self.unwritten: npt.NDArray[np.bool_] | bool = False  # True: no byte was ever written
        self.flights: list[Span] = []  # what collectives that have not completed may write at any moment


class WriteLog:
    """The storages touched in this step."""

    def __init__(self, *, unknown: int, check_reuse: bool) -> None:
        self._entries: dict[int, Entry] = {}
        self._unknown = unknown
        self._check_reuse = check_reuse
        self.reused = 0
        self.stale = 0

    def forget(self) -> None:
        """A step has ended, or something unobserved may have written: only what is in flight is still known."""
        flying: dict[int, Entry] = {}
        for identity, entry in self._entries.items():
            if entry.flights:
                flying[identity] = entry
                entry.bits.clear()
                entry.producers.clear()
                entry.origins.clear()
            else:
                free_weak_storage(entry.weak)
        self._entries = flying

    def void(self) -> None:
        """No fingerprint is taken over from before; what made each tensor is still known."""
        for entry in self._entries.values():
            entry.bits.clear()

    def launched(self, tensor: torch.Tensor, kind: KnownKind, *, by: tuple[int, int]) -> Span:
        """A collective writes this tensor from now on, until `landed`."""
        self.written(tensor, kind)
        entry, _ = self.entry(tensor)
        entry.writer = by
        address = tensor.data_ptr()
        span = (address, address + kind.geometry.span)
        entry.flights.append(span)
        return span

    def landed(self, identity: int, span: Span, *, by: tuple[int, int]) -> bool:
        """A collective has completed: earlier fingerprints are void again. Whether nothing else flies over the span."""
        entry = self._entries[identity]
        entry.flights.remove(span)
        entry.bits.clear()
        entry.producers.clear()
        entry.writer = by
        return not _meets(entry.flights, span)

    def guarded(self, storage: Any) -> tuple[int, Span]:
        """A storage is written by somebody unseen from now on, until `landed`."""
        identity = storage._cdata
        entry = self._entries.get(identity)
        if entry is None:
            entry = self._entries[identity] = Entry(storage._weak_ref())
        span = (storage.data_ptr(), storage.data_ptr() + storage.nbytes())
        entry.bits.clear()
        entry.flights.append(span)
        return identity, span

    def resized(self, storage: Any, before: int) -> None:
        """A storage of `before` bytes has other memory now; where it had none, nobody has written any of it (CA-35)."""
        identity = storage._cdata
        entry = self._entries.get(identity)
        if entry is None:
            entry = self._entries[identity] = Entry(storage._weak_ref())
        entry.bits.clear()
        entry.producers.clear()
        if before == 0 and storage.nbytes():
            entry.unwritten = True

    def known(self, identity: int, address: int, kind: KnownKind, bits: str) -> None:
        """What a tensor holds has just been read by somebody else."""
        self._entries[identity].bits[(address, kind.signature)] = bits

    def abandoned(self, identity: int, span: Span) -> None:
        """Nobody watches for the completion any longer."""
        entry = self._entries.get(identity)
        if entry is not None:
            entry.flights.remove(span)
            entry.bits.clear()

    def in_flight(self, tensor: torch.Tensor, kind: KnownKind) -> bool:
        """Whether a collective that has not completed may be writing into this tensor."""
        entry = self._entries.get(storage_id(tensor))
        if entry is None or not entry.flights:
            return False
        address = tensor.data_ptr()
        return _meets(entry.flights, (address, address + kind.geometry.span))

    def entry(self, tensor: torch.Tensor) -> tuple[Entry, bool]:
        """The entry of a tensor's storage, and whether it is new to this step."""
        identity = storage_id(tensor)
        found = self._entries.get(identity)
        if found is not None:
            return found, False
        made = self._entries[identity] = Entry(weak_storage(tensor))
        return made, True

    def read(self, tensor: torch.Tensor, kind: KnownKind) -> tuple[str | Gap[CaptureGap], How, tuple[int, int] | int]:
        """Fingerprint of a tensor now, how it came about, and what produced it."""
        entry, _ = self.entry(tensor)
        address = tensor.data_ptr()
        bits, how = self._bits(entry, tensor, kind, address)
        return bits, how, self._source(entry, kind, address)

    def source(self, tensor: torch.Tensor, kind: KnownKind) -> tuple[int, int] | int:
        """What produced a tensor, without reading it."""
        return self._source(self.entry(tensor)[0], kind, tensor.data_ptr())

    def made(self, tensor: torch.Tensor, kind: KnownKind, *, by: tuple[int, int], uninitialised: bool) -> None:
        """A call has returned this tensor, where operators are not watched: who else writes it is not known."""
        entry, fresh = self.entry(tensor)
        entry.producers[(tensor.data_ptr(), kind.view)] = by
        if fresh and uninitialised and kind.geometry.num_elements:
            entry.unwritten = True

    def unwritten(self, tensor: torch.Tensor, kind: KnownKind) -> bool:
        """Whether some of what a tensor covers was allocated and never written, as far as was seen."""
        entry = self._entries.get(storage_id(tensor))
        if entry is None or entry.unwritten is False:
            return False
        return self._holds_unwritten(entry, tensor, kind, tensor.data_ptr())

    def name(self, tensor: torch.Tensor, kind: KnownKind, origin: int) -> None:
        """This tensor is a parameter, a buffer or another named thing, until the step ends."""
        if kind.readable:
            self.entry(tensor)[0].origins.setdefault((tensor.data_ptr(), kind.signature), origin)

    def written(self, tensor: torch.Tensor, kind: KnownKind, *, partly: bool = False) -> None:
        """A call has just written this tensor in place: earlier fingerprints and views of its storage are void.

        `partly`: elements it left out stay uninitialised if they were.
        """
        entry, _ = self.entry(tensor)
        entry.bits.clear()
        entry.producers.clear()
        if entry.unwritten is not False and not partly:
            self._mark_written(entry, tensor, kind)

    def produced(
        self, tensor: torch.Tensor, kind: KnownKind, *, by: tuple[int, int], wrote: bool, uninitialised: bool
    ) -> tuple[str | Gap[CaptureGap], How]:
        """A call has just returned this tensor: fresh, written in place (`wrote`), or a view of something older."""
        entry, fresh = self.entry(tensor)
        address = tensor.data_ptr()
        if fresh or wrote:
            entry.writer = by
            if fresh and uninitialised and kind.geometry.num_elements:
                entry.unwritten = True
        else:
            entry.producers[(address, kind.view)] = by
        return self._bits(entry, tensor, kind, address)

    def _bits(
        self, entry: Entry, tensor: torch.Tensor, kind: KnownKind, address: int
    ) -> tuple[str | Gap[CaptureGap], How]:
        if entry.flights and _meets(entry.flights, (address, address + kind.geometry.span)):
            return IN_FLIGHT, How.READ
        if entry.unwritten is not False and self._holds_unwritten(entry, tensor, kind, address):
            return UNINITIALISED, How.READ
        key = (address, kind.signature)
        found = entry.bits.get(key)
        if found is None:
            if not holds_bytes(tensor, kind.geometry, address):
                return RELEASED, How.READ
            found = entry.bits[key] = fingerprint_in_memory_order(address, kind.geometry)
            return found, How.READ
        if self._check_reuse:
            self.reused += 1
            self.stale += found != fingerprint_in_memory_order(address, kind.geometry)
        return found, How.INHERITED

    def _source(self, entry: Entry, kind: KnownKind, address: int) -> tuple[int, int] | int:
        producer = entry.producers.get((address, kind.view))
        if producer is not None:
            return producer
        if entry.writer is not None:
            return entry.writer
        return entry.origins.get((address, kind.signature), self._unknown)

    def _mark_written(self, entry: Entry, tensor: torch.Tensor, kind: KnownKind) -> None:
        total = tensor.untyped_storage().nbytes()
        if kind.geometry.dense and kind.geometry.num_bytes == total:
            entry.unwritten = False
            return
        if entry.unwritten is True:
            if total > MAX_TRACKED_BYTES:
                return
            entry.unwritten = np.ones(total, np.bool_)
        if isinstance(entry.unwritten, np.ndarray):
            _byte_view(entry.unwritten, tensor, kind, tensor.data_ptr())[...] = False
            if not entry.unwritten.any():
                entry.unwritten = False

    def _holds_unwritten(self, entry: Entry, tensor: torch.Tensor, kind: KnownKind, address: int) -> bool:
        if isinstance(entry.unwritten, np.ndarray):
            return bool(_byte_view(entry.unwritten, tensor, kind, address).any())
        return entry.unwritten


def _meets(flights: list[Span], span: Span) -> bool:
    return any(start < span[1] and span[0] < end for start, end in flights)


def _byte_view(
    mask: npt.NDArray[np.bool_], tensor: torch.Tensor, kind: KnownKind, address: int
) -> npt.NDArray[np.bool_]:
    """The part of a per-byte mask of the storage that a tensor covers."""
    geometry = kind.geometry
    if geometry.num_bytes == 0:
        return mask[:0]
    offset = address - tensor.untyped_storage().data_ptr()
    view: npt.NDArray[np.bool_] = np.ndarray(
        (*geometry.sizes, geometry.itemsize),
        np.bool_,
        buffer=mask.data,
        offset=offset,
        strides=(*(stride * geometry.itemsize for stride in geometry.strides), 1),
    )
    return view
