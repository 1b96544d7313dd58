"""Slots with a full summary each, as levels `module` and `callsite` have them."""

from __future__ import annotations

import torch

from paritrace.capture.definitions import Definitions
from paritrace.capture.pytorch.dumps import Dumps
from paritrace.capture.pytorch.kinds import KnownKind
from paritrace.capture.pytorch.memory import RELEASED, holds_bytes
from paritrace.capture.pytorch.parts import part_of
from paritrace.capture.pytorch.registers import Registers
from paritrace.capture.pytorch.storages import IN_FLIGHT, UNINITIALISED, WriteLog
from paritrace.evidence import calls
from paritrace.evidence.calls import How, OriginKind
from paritrace.evidence.gaps import CaptureGap, Gap


class FullSlots:
    """Makes slots and their details from live tensors; keeps none of them (CA-34)."""

    def __init__(self, definitions: Definitions, registers: Registers, log: WriteLog) -> None:
        self._definitions = definitions
        self._kinds = registers.kinds
        self._summaries = registers.summaries
        self._dumps: Dumps | None = registers.dumps
        self._log = log
        self.unknown = definitions.origin(OriginKind.UNKNOWN, "")

    def add(
        self,
        tensor: torch.Tensor,
        path: str,
        where: tuple[int, str],
        slots: list[calls.Slot],
        details: list[calls.Detail],
        *,
        gap: Gap[CaptureGap] | None = None,
    ) -> None:
        """Append the slot of one tensor of a call, and its detail where there are bytes to read.

        Args:
            where: the call's record and the side, "i" or "o".
            gap: why its bytes are not to be read, where the caller knows.
        """
        record, side = where
        kind = self._kinds.of(tensor)
        name = self._definitions.name(path)
        part = part_of(tensor)
        source = -1 if side == "o" else self._source(part, kind)
        gap = gap or self._unreadable(part, kind)
        if gap is not None:
            slots.append(calls.Slot(name, kind.id, gap, source))
        else:
            detail, bits = self._summaries.detail(part, kind, call=record, side=side, slot=len(slots))
            slots.append(calls.Slot(name, kind.id, bits, source, How.READ))
            details.append(detail)
        if self._dumps is not None:
            self._dumps.slot(slots[-1], part, kind, (record, side, len(slots) - 1))

    def _unreadable(self, part: torch.Tensor, kind: KnownKind) -> Gap[CaptureGap] | None:
        """Why there are no bytes of a tensor to read now."""
        if not kind.readable:
            return kind.geometry.gap or UNINITIALISED
        if not holds_bytes(part, kind.geometry, part.data_ptr()):
            return RELEASED
        return IN_FLIGHT if self._log.in_flight(part, kind) else None

    def _source(self, part: torch.Tensor, kind: KnownKind) -> tuple[int, int] | int:
        return self._log.source(part, kind) if kind.readable else self.unknown
