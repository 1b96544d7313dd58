"""Full summaries of module-level slots: from a live tensor's bytes to a `Detail` row (CA-5, CA-28)."""

from __future__ import annotations

import torch
import xxhash

from paritrace.capture.pytorch.kinds import KnownKind
from paritrace.capture.pytorch.memory import fingerprint_in_memory_order, logical_buffer
from paritrace.evidence import calls, summaries

MAX_KEPT = 4096  # summaries of one step kept for reuse: far more than a step of a large model has distinct tensors


class Summarising:
    """Summarises each content once per step: equal bits (xxh3-64, dtype, size) have equal statistics.

    A module's input is mostly the output of another; its bytes are read once more for the fingerprint, which is cheap,
    and the statistics are taken over when the fingerprint was met in this step.
    """

    def __init__(self, regions: int) -> None:
        self._regions = regions
        self._met: dict[tuple[str, str, int, tuple[int, ...] | None], summaries.SlotSummary] = {}

    def step_ended(self) -> None:
        self._met.clear()

    def detail(
        self, tensor: torch.Tensor, kind: KnownKind, *, call: int, side: str, slot: int, bits: str | None = None
    ) -> tuple[calls.Detail, str]:
        """The full summary of a readable part of a tensor, and its fingerprint in memory order; nothing of it is kept.

        `bits`: the fingerprint in logical order, where it has just been taken.
        """
        return self.detail_at(tensor.data_ptr(), kind, call=call, side=side, slot=slot, bits=bits)

    def detail_at(
        self, address: int, kind: KnownKind, *, call: int, side: str, slot: int, bits: str | None = None
    ) -> tuple[calls.Detail, str]:
        """The same for a tensor known by its address alone."""
        geometry = kind.geometry
        buffer = logical_buffer(address, geometry)
        bits = bits or xxhash.xxh3_64_hexdigest(buffer)
        key = (bits, geometry.dtype, geometry.num_elements, kind.samples)
        summary = self._met.get(key)
        if summary is None:
            summary = summaries.summarise(
                buffer,
                dtype=geometry.dtype,
                num_elements=geometry.num_elements,
                regions=self._regions,
                bits=bits,
                samples=kind.samples,
            )
            if len(self._met) < MAX_KEPT:
                self._met[key] = summary
        detail = calls.Detail(
            call,
            side,
            slot,
            summary.bits,
            summary.xor,
            summary.regions,
            summary.elements,
            summary.moments,
            summary.counts,
            summary.samples,
            summary.degenerate,
            summary.statistics_gap,
            None,
        )
        return detail, bits if geometry.contiguous else fingerprint_in_memory_order(address, geometry)
