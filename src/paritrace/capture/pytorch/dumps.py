"""`--dump`: the slots of selected calls, kept whole before the hook that sees them returns (CA-9, CA-33, CA-34)."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from paritrace.capture.pytorch.kinds import KnownKind
from paritrace.capture.pytorch.memory import RELEASED, Geometry, holds_bytes, logical_buffer
from paritrace.capture.recorder import Recorder
from paritrace.capture.settings import Selection
from paritrace.capture.tensor_store import TensorStore
from paritrace.evidence import calls
from paritrace.evidence.dumps import Dumped, Kept
from paritrace.evidence.gaps import CaptureGap, Gap

_IN_FLIGHT = CaptureGap.IN_FLIGHT


class Dumps:
    """Which calls' slots are kept, and the lines that wait for their call's row. Holds no tensor (CA-34)."""

    def __init__(self, recorder: Recorder, store: TensorStore) -> None:
        self._recorder = recorder
        self._store = store
        self._selection = recorder.settings.dump
        self._unmet = {f"--dump {pattern}": Selection(select=(pattern,)) for pattern in self._selection.select}
        store.unmet |= self._unmet.keys()
        self._open: dict[int, list[Dumped]] = {}
        self._step_began = 0
        self._flying: dict[tuple[int, int], Dumped] = {}  # outputs of collectives, by call and slot

    def wants(self, *, module: str, file: str, function: str) -> bool:
        """Whether a call that is recorded now is to be kept whole."""
        settings = self._recorder.settings
        if self._selection.everything or not settings.covers(self._recorder.steps.step):
            return False
        wanted = self._selection.wants(module=module, file=file, function=function)
        if wanted and self._unmet:
            for option, pattern in list(self._unmet.items()):
                if pattern.wants(module=module, file=file, function=function):
                    self.met(option)
        return wanted

    def asked(self, options: Iterable[str]) -> None:
        """Options that have to name a call, beside `--dump`."""
        self._store.unmet.update(options)

    def met(self, option: str) -> None:
        """This option has named a call."""
        self._unmet.pop(option, None)
        self._store.unmet.discard(option)

    def open(self, call: int) -> None:
        """Keep the slots of this call."""
        self._open[call] = []

    def is_open(self, call: int) -> bool:
        """Whether the slots of this call are kept."""
        return call in self._open

    def slot(self, slot: calls.Slot, tensor: torch.Tensor | None, kind: KnownKind, where: tuple[int, str, int]) -> None:
        """A slot of a call was made from `tensor`, the part whose bytes stand for it; a gap stays the same gap."""
        lines = self._open.get(where[0])
        if lines is None:
            return
        call, side, index = where
        name = self._recorder.definitions.text(slot.name)
        kept: Kept = slot.bits if isinstance(slot.bits, Gap) else _NOTHING
        if tensor is not None and not isinstance(slot.bits, Gap):
            kept = self.kept(tensor, kind.geometry, name)
        geometry = kind.geometry
        line = Dumped(call, side, index, name, kept, geometry.dtype, geometry.shape)
        lines.append(line)
        if isinstance(kept, Gap) and kept.gap is _IN_FLIGHT and side == "o":
            self._flying[call, index] = line

    def close(self, call: int) -> None:
        """The call's row was written: its lines follow."""
        for line in self._open.pop(call, ()):
            self._recorder.emit(line)

    def landed(self, call: int, index: int, *, address: int, kind: KnownKind) -> None:
        """A collective has completed, and this is where one of its outputs lies (CA-31)."""
        line = self._flying.pop((call, index), None)
        if line is not None:
            kept = self.at(address, kind.geometry, line.name)
            self._recorder.emit(Dumped(call, "o", index, line.name, kept, line.dtype, line.shape))

    def step_ended(self) -> None:
        """A call that did not return by now never will; what flies lands at most a step later."""
        self._open.clear()
        self._flying = {place: line for place, line in self._flying.items() if place[0] >= self._step_began}
        self._step_began = self._recorder.sequence

    def kept(self, tensor: torch.Tensor, geometry: Geometry, name: str) -> Kept:
        """The stored tensor; `tensor` is the part whose bytes stand for it, and they are there and not in flight."""
        address = tensor.data_ptr()
        return self.at(address, geometry, name) if holds_bytes(tensor, geometry, address) else RELEASED

    def at(self, address: int, geometry: Geometry, name: str) -> Kept:
        """The same for a tensor known by its address."""
        return self.raw(
            logical_buffer(address, geometry),
            dtype=geometry.dtype,
            shape=geometry.shape,
            itemsize=geometry.itemsize,
            name=name,
        )

    def raw(self, data: object, *, dtype: str, shape: tuple[int, ...], itemsize: int, name: str) -> Kept:
        """The same for bytes that are no tensor of the workload's."""
        return self._store.keep(data, dtype=dtype, shape=shape, itemsize=itemsize, name=name)


_NOTHING: Gap[CaptureGap] = Gap(CaptureGap.NO_DATA, "no bytes to keep")
