"""Whole blocks of a journal as columns, by a compiled pass where numba is installed (extra `fast`; PF-10).

Loading numba costs some tenths of a second for each process, compiling the pass some seconds once for each machine, so
that only long journals take it. What it does not take, a block or a line, is read as without it.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from paritrace.evidence.call_batches import CALL_FIELDS, FROM_ORIGIN, CallBatch
from paritrace.evidence.kernels import available

PAYS_OFF_FROM = 24 << 20  # bytes of a journal: reading those without it costs about what loading it does
BLOCK_BYTES = 1 << 20
PADDING = b"\n" * 32  # no look ahead leaves the array
DETAIL_START = b'["d",'
SHORTEST_SLOT = len('[0,0,"0123456789abcdef",0,0]')
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


_NOTHING = np.array([], np.int64)
NO_DETAILS = DetailLines(_NOTHING, _NOTHING, _NOTHING.astype(np.bool_), ())


class Apart(Struct, frozen=True):
    """A block taken apart; `others` and the summaries stand behind so many calls of the block."""

    calls: CallBatch
    details: DetailLines
    others: list[tuple[int, bytes]]


class _Health(Struct):
    broken: bool = False


_health = _Health()


def pays_off(num_bytes: int) -> bool:
    """Whether a journal of this size is to be taken apart by the compiled pass."""
    return num_bytes >= PAYS_OFF_FROM and not _health.broken and available()


def apart(block: bytes) -> Apart | None:
    """Take a block of whole lines apart; None where that is left to the other ways of reading."""
    num_lines = block.count(b"\n")
    calls = np.empty((len(CALL_FIELDS) + 2, num_lines), np.int64)
    most = len(block) // SHORTEST_SLOT + 1
    slots, bits = np.empty((6, most), np.int64), np.empty(most, np.uint64)
    details, others = np.empty((6, num_lines), np.int64), np.empty((3, num_lines), np.int64)
    counts = np.zeros(4, np.int64)
    data = np.frombuffer(block + PADDING, np.uint8)
    try:
        taken = _pass()(data, len(block), calls, slots, bits, details, others, counts)
    except Exception:  # noqa: BLE001 - an optional speed-up must never stop a comparison; msgspec reads the same
        _health.broken = True
        return None
    if taken:
        return None
    num_calls, num_slots, num_details, num_others = counts.tolist()
    batch = _batch(calls[:, :num_calls], slots[:, :num_slots], bits[:num_slots])
    spans, found = others[:, :num_others].T.tolist(), details[:, :num_details]
    if num_details and any(block.startswith(DETAIL_START, start) for start, _, _ in spans):
        spans, found = sorted([*spans, *found[3:].T.tolist()]), details[:, :0]  # of two of a slot the later one counts
    return Apart(batch, _details(block, found), [(place, block[start:end]) for start, end, place in spans])


def _batch(calls: Numbers, slots: Numbers, bits: Numbers) -> CallBatch:
    columns: dict[str, Numbers] = dict(zip((*CALL_FIELDS, "inputs", "outputs"), calls, strict=True))
    name, kind, source, output, how, made = slots
    columns |= {"name": name, "kind": kind, "bits": bits, "source": source, "how": how}
    columns |= {"odd": np.zeros(len(bits), np.int8), "output": np.where(made != 0, output, FROM_ORIGIN)}
    return CallBatch(columns)


def _details(block: bytes, found: Numbers) -> DetailLines:
    calls, slots, degenerate, starts, ends, _ = found
    lines = [block[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return DetailLines(calls.copy(), slots.copy(), degenerate.astype(np.bool_), lines)


@cache
def _pass() -> Any:
    return importlib.import_module("paritrace.evidence.compiled_lines").taken_apart
