"""Compiled passes over floating-point data, with numba when it is installed (extra `fast`; CA-12).

The numbers are those of evidence/statistics.py and evidence/mixing.py, bit for bit: the same lanes in the same order.
Loading numba and its cached kernels costs some tenths of a second per process, compiling them about two seconds once
per machine. So NumPy works until it has cost about as much as a warm start; a short run never pays, and a long one at
most about twice what knowing its length would have cost. Every function here answers None while NumPy is to work.
"""

import importlib
import importlib.util
import struct
import sys
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from paritrace.evidence.arrays import Bytes
from paritrace.evidence.dtypes import Component
from paritrace.evidence.statistics import FLOATS, LANES, Lanes, Totals

PAYS_OFF_AFTER = 64 << 20  # numbers; NumPy takes 3 to 6 ns for one, so about 0.3 s: what a warm start costs
CALL_WORTH = 4096  # numbers; what NumPy needs for them it also needs for the calls into it, about 20 us


_NO_TALLIES = np.array([(1 << 63) - 1, -1 << 63, *[0] * 8], dtype=np.int64)  # lowest and highest key, then counts


class _Ledger(Struct):
    """What NumPy has handled in this process, in numbers, and whether the kernels are known to fail."""

    handled: int = 0
    broken: bool = False


_ledger = _Ledger()


@cache
def available() -> bool:
    """Whether numba is installed and this machine's byte order is that of the kernels; does not import numba."""
    return sys.byteorder == "little" and importlib.util.find_spec("numba") is not None


def summary(data: Bytes, component: Component) -> tuple[int, Totals] | None:
    """The element sum and the totals of `statistics.gather`, from one pass over memory."""
    layout = FLOATS.get(component)
    if layout is None or not _pays_off(bits := data.view(layout.bits)):
        return None
    totals = Totals(np.zeros((2, LANES)))
    tallies = _NO_TALLIES.copy()
    elements = _call("SUMMARY", component, bits, totals.lanes[0], totals.lanes[1], tallies)
    if elements is None:
        return None
    _read_tallies(totals, tallies.tolist(), component, bits.size)
    return elements, totals


def state(data: Bytes, component: Component) -> tuple[int, Lanes] | None:
    """The element sum and the lanes of the sum of squares, from one pass over memory."""
    layout = FLOATS.get(component)
    if layout is None or not _pays_off(bits := data.view(layout.bits)):
        return None
    squares = np.zeros(LANES)
    elements = _call("STATE", component, bits, squares)
    return None if elements is None else (elements, squares)


def element_sum(data: Bytes, itemsize: int) -> int | None:
    """`elements-u64` of elements of 2, 4 or 8 bytes."""
    if itemsize not in (2, 4, 8) or not _pays_off(bits := data.view(f"u{itemsize}")):
        return None
    return _call("ELEMENTS", itemsize, bits)


def indexed_sum(data: Bytes, itemsize: int, *, starts: npt.NDArray[np.int64], length: int) -> int | None:
    """`indexed-u64` of elements of 1, 2, 4 or 8 bytes, in runs of `length` that begin at the indices `starts`."""
    if itemsize not in (1, 2, 4, 8) or not _pays_off(bits := data.view(f"u{itemsize}")):
        return None
    return _call("INDEXED", itemsize, bits, starts, length)


def _pays_off(bits: npt.NDArray[Any]) -> bool:
    """Whether to use the kernels by now; writeable, aligned memory only, because every other kind is compiled anew."""
    if _ledger.handled < PAYS_OFF_AFTER:
        _ledger.handled += CALL_WORTH + bits.size
        return False
    flags = bits.flags
    return not _ledger.broken and flags.writeable and flags.aligned and available()


def _call(table: str, key: Component | int, *arguments: Any) -> int | None:
    """The result of a kernel, which is compiled or read from numba's cache at its first call."""
    try:
        return int(_tables()[table][key](*arguments))
    except Exception:  # noqa: BLE001 - an optional speed-up must never hurt the workload (P6); NumPy does the same
        _ledger.broken = True
        return None


@cache
def _tables() -> dict[str, Any]:
    return vars(importlib.import_module("paritrace.evidence.compiled"))


def _read_tallies(totals: Totals, tallies: list[int], component: Component, num_numbers: int) -> None:
    low, high, nonfinite, *classes, low_bits_zero = tallies
    totals.finite = num_numbers - nonfinite
    if totals.finite:
        totals.min, totals.max = _number(low, component), _number(high, component)
    totals.nan, totals.positive_infinity, totals.negative_infinity = classes[:3]
    totals.zero, totals.negative_zero, totals.subnormal = classes[3:]
    totals.low_bits_zero = low_bits_zero if component is Component.FLOAT32 else 0


def _number(key: int, component: Component) -> float:
    """The number of an ordered key: a signed integer whose order is that of the floats, of float32 for narrow ones."""
    wide = FLOATS[Component.FLOAT64 if component is Component.FLOAT64 else Component.FLOAT32]
    magnitude = int(wide.magnitude)
    bits = key if key >= 0 else int(wide.sign) | (magnitude ^ (key & magnitude))
    size, code = (8, "<d") if wide.itemsize == 8 else (4, "<f")
    return float(struct.unpack(code, bits.to_bytes(size, "little"))[0])
