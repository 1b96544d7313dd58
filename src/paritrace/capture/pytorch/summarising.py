"""Full summaries of module-level slots: from a live tensor's bytes to a `Detail` row (CA-5, CA-28)."""

from __future__ import annotations

import torch

from paritrace.capture.pytorch.kinds import KnownKind
from paritrace.capture.pytorch.memory import fingerprint_in_memory_order, logical_buffer
from paritrace.evidence import calls, summaries


def detail_of(tensor: torch.Tensor, kind: KnownKind, *, regions: int, call: int, side: str, slot: int) -> calls.Detail:
    """Summarise a readable tensor now; nothing of it is kept."""
    geometry = kind.geometry
    summary = summaries.summarise(
        logical_buffer(tensor.data_ptr(), geometry),
        dtype=geometry.dtype,
        num_elements=geometry.num_elements,
        regions=regions,
    )
    return calls.Detail(
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


def bits_of(tensor: torch.Tensor, kind: KnownKind, detail: calls.Detail) -> str:
    """The slot's fingerprint, in memory order; for a contiguous tensor the detail has it already."""
    if kind.geometry.contiguous:
        return detail.bits
    return fingerprint_in_memory_order(tensor.data_ptr(), kind.geometry)
