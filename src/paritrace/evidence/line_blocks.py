"""Whole blocks of a journal as columns, by a compiled pass where numba is installed (extra `fast`; PF-10).

Compiling the pass takes some seconds once for each machine, loading it some hundredths of a second for each process, so
that only long journals take it. What it does not take, a block or a line, is read as without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from paritrace.evidence.call_batches import CALL_FIELDS, CallBatch, narrow
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.kernels import available
from paritrace.evidence.machine_code import load_pass

PAYS_OFF_FROM = 24 << 20  # bytes of a journal: reading those without it costs about what loading it does
BLOCK_BYTES = 4 << 20
PADDING = b"\n" * 32  # so many bytes at least lie behind a block: no look ahead leaves the array
TOLD_APART = (b'["d",', b'["t",')
SHORTEST_SLOT = len('[0,0,{"gap":"no_data"},0,0]')
MEAN_LINE = 16  # bytes, at the least: a block of shorter lines is left to the other ways
OF_CALLS, OF_SLOTS, OF_DETAILS, OF_OTHERS = len(CALL_FIELDS) + 2, 6, 6, 3  # rows of tables
TAKEN = 0
LONGEST_GAP, OF_LENGTH = 255, 8  # as the pass says where the reason of a gap stands
Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class DetailLines:
    """Summaries that were looked at and are kept as lines: by column `calls`, `slots` (2 n + side), `degenerate`."""

    calls: Numbers
    slots: Numbers
    degenerate: Numbers
    lines: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.lines)


_REASONS = {reason.value.encode(): Gap(reason) for reason in CaptureGap}
_NOTHING = np.array([], np.int64)
NO_DETAILS = DetailLines(_NOTHING, _NOTHING, _NOTHING.astype(np.bool_), ())


class Window(NamedTuple):
    """Whole lines in the bytes that they were read with, from `start` to `end`: they are not copied."""

    data: bytes
    start: int
    end: int

    def bytes(self) -> bytes:
        """The lines alone."""
        return self.data[self.start : self.end]


def whole(data: bytes) -> Window:
    """Bytes that are whole lines and nothing else."""
    return Window(data, 0, len(data))


class Apart(Struct, frozen=True):
    """A block taken apart; `others` stand behind so many calls of the block; `samples` of states are lines still."""

    calls: CallBatch
    details: DetailLines
    samples: list[bytes]
    others: list[tuple[int, bytes]]


class _Health(Struct):
    broken: bool = False


_health = _Health()


def pays_off(num_bytes: int) -> bool:
    """Whether a journal of this size is to be taken apart by the compiled pass."""
    return num_bytes >= PAYS_OFF_FROM and not _health.broken and available()


class Tables:
    """Where the pass puts what it finds: the same memory block after block; new pages cost as much as the pass."""

    def __init__(self) -> None:
        self._block_bytes = -1

    def apart(self, block: Window) -> Apart | None:
        """Take a block of whole lines apart; None where that is left to the other ways of reading."""
        if len(block.data) - block.end < len(PADDING):
            block = Window(block.bytes() + PADDING, 0, block.end - block.start)
        size = block.end - block.start
        if size > self._block_bytes:
            self._make(size + size // 8)  # blocks end with whole lines: the next may be longer
        data = np.frombuffer(block.data, np.uint8, size, block.start)
        tables = (self._slots, self._bits, self._slots.shape[1], self._details, self._samples, self._others)
        try:
            taken = _pass()(*_addresses(data, size, self._calls, self._calls.shape[1], *tables, self._counts))
        except Exception:  # noqa: BLE001 - an optional speed-up must never stop a comparison; msgspec reads the same
            _health.broken = True
            return None
        return self._found(block) if taken == TAKEN else None

    def _make(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        lines, slots = block_bytes // MEAN_LINE + 1, block_bytes // SHORTEST_SLOT + 1
        self._calls, self._slots = np.empty((OF_CALLS, lines), np.int64), np.empty((OF_SLOTS, slots), np.int64)
        self._bits = np.empty(slots, np.uint64)
        self._details = np.empty((OF_DETAILS, lines), np.int64)
        self._samples, self._others = (np.empty((OF_OTHERS, lines), np.int64) for _ in range(2))
        self._counts = np.empty(5, np.int64)

    def _found(self, window: Window) -> Apart | None:
        block = window.data
        num_calls, num_slots, num_details, num_samples, num_others = self._counts.tolist()
        details, samples = self._details[:, :num_details], self._samples[:, :num_samples]
        others = self._others[:, :num_others]
        for lines in (details[3:5], samples[:2], others[:2]):
            np.add(lines, window.start, out=lines)
        spans = others.T.tolist()
        if any(block.startswith(TOLD_APART, start) for start, _, _ in spans):
            # of two summaries of a slot the later one counts: they keep their order, and so do samples
            spans = sorted([*spans, *details[3:].T.tolist(), *samples.T.tolist()])
            details, samples = details[:, :0], samples[:, :0]
        calls = _batch(window, self._calls[:, :num_calls], self._slots[:, :num_slots], self._bits[:num_slots])
        if calls is None:
            return None
        return Apart(
            calls,
            _details(block, details),
            [block[start:end] for start, end, _ in samples.T.tolist()],
            [(place, block[start:end]) for start, end, place in spans],
        )


def _addresses(*arguments: Any) -> list[int]:
    return [one if isinstance(one, int) else one.ctypes.data for one in arguments]


def _batch(window: Window, calls: Numbers, slots: Numbers, bits: Numbers) -> CallBatch | None:
    """Copies, since the tables are used again; None where a gap has a reason that is none."""
    gaps = _gaps(window, slots[5])
    if gaps is None:
        return None
    columns = dict(zip((*CALL_FIELDS, "inputs", "outputs"), map(_copied, calls), strict=True))
    columns |= dict(zip(("name", "kind", "source", "output", "how"), map(_copied, slots[:5]), strict=True))
    odd, values = gaps
    return CallBatch(columns | {"bits": bits.copy(), "odd": odd}, values)


def _gaps(window: Window, where: Numbers) -> tuple[Numbers, list[Gap[CaptureGap]]] | None:
    """Of each slot 0, or which of the gaps stands where its bits would; None where a gap has a reason that is none."""
    odd, places = np.zeros(len(where), np.int8), np.flatnonzero(where)
    known: dict[bytes, int] = {}
    for place, at in zip(places.tolist(), where[places].tolist(), strict=True):
        start = window.start + (at >> OF_LENGTH)
        odd[place] = known.setdefault(window.data[start : start + (at & LONGEST_GAP)], len(known) + 1)
        if len(known) > len(_REASONS):
            return None
    values = [_REASONS.get(reason) for reason in known]
    gaps = [value for value in values if value is not None]
    return (odd, gaps) if len(gaps) == len(values) else None


def _copied(column: Numbers) -> Numbers:
    found = narrow(column)
    return found.copy() if found is column else found


def _details(block: bytes, found: Numbers) -> DetailLines:
    calls, slots, degenerate, starts, ends, _ = found
    lines = [block[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return DetailLines(calls.copy(), slots.copy(), degenerate.astype(np.bool_), lines)


@cache
def _pass() -> Any:
    return load_pass()
