"""Moments and counts of the numbers in contiguous bytes, in one fixed order of summation (CA-5, CA-8).

Order: 64 lanes; lane j adds the finite values j, j + 64, j + 128, … one after the other in float64, and the lanes are
then added exactly and rounded once. So a sum does not depend on threads, block sizes or the vector width. Numbers of
one byte are counted per code instead, and their sums are exact, rounded once. evidence/kernels.py follows the same
order.
"""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from paritrace.evidence.arrays import Bytes
from paritrace.evidence.byte_values import ByteTable, byte_is_negative_zero, byte_is_subnormal, byte_values
from paritrace.evidence.calls import Counts, Moments
from paritrace.evidence.dtypes import Component
from paritrace.evidence.mixing import byte_counts

LANES = 64
BLOCK = 16384  # numbers at a time; in float64 they fill 128 KiB, which the second-level cache holds

Lanes = npt.NDArray[np.float64]
Numbers = npt.NDArray[Any]


class FloatFormat(Struct, frozen=True):
    """The bits of a float type; the numbers are NumPy scalars of the dtype `bits`, which saves their conversion."""

    bits: str
    itemsize: int
    sign: Any
    magnitude: Any
    smallest_normal: Any
    infinity: Any


def _float_format(itemsize: int, mantissa: int) -> FloatFormat:
    scalar = np.dtype(f"<u{itemsize}").type
    sign = 1 << (8 * itemsize - 1)
    return FloatFormat(
        bits=f"<u{itemsize}",
        itemsize=itemsize,
        sign=scalar(sign),
        magnitude=scalar(sign - 1),
        smallest_normal=scalar(1 << mantissa),
        infinity=scalar(sign - (1 << mantissa)),
    )


FLOATS = {
    Component.FLOAT64: _float_format(8, mantissa=52),
    Component.FLOAT32: _float_format(4, mantissa=23),
    Component.BFLOAT16: _float_format(2, mantissa=7),
    Component.FLOAT16: _float_format(2, mantissa=10),
}
LOW_BITS = np.uint32(0xFFFF)
_NUMPY_NAMES = {
    Component.FLOAT64: "<f8",
    Component.FLOAT32: "<f4",
    Component.INT64: "<i8",
    Component.INT32: "<i4",
    Component.INT16: "<i2",
    Component.UINT64: "<u8",
    Component.UINT32: "<u4",
    Component.UINT16: "<u2",
}
_ITEMSIZES = {component: np.dtype(name).itemsize for component, name in _NUMPY_NAMES.items()} | {
    component: layout.itemsize for component, layout in FLOATS.items()
}


class Totals(Struct, gc=False):
    """What is gathered over the numbers; row 0 of `lanes` sums the numbers, row 1 their squares."""

    lanes: Lanes
    min: float = math.inf
    max: float = -math.inf
    finite: int = 0
    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    zero: int = 0
    negative_zero: int = 0
    subnormal: int = 0
    low_bits_zero: int = 0


def statistics(data: Bytes, *, dtype: str, component: Component) -> tuple[Moments, Counts]:
    """Moments over finite values and counts. `zero` includes negative zeros; all sums are of float64."""
    with np.errstate(all="ignore"):
        if component is Component.BYTE:
            return _of_bytes(byte_counts(data), _byte_table(dtype))
        return finished(gather(data, component))


def sum_of_squares(data: Bytes, *, dtype: str, component: Component) -> float:
    """The sum of squares; NaN where a value is NaN, infinite where one is or where the sum is beyond float64."""
    with np.errstate(all="ignore"):
        if component is Component.BYTE:
            table, counts = _byte_table(dtype), byte_counts(data)
            return exact_sum(np.where(counts > 0, table.values**2 * counts, 0.0))
        lanes = np.zeros(LANES)
        scratch = np.empty((_num_rows(data, component), LANES))
        for values in _blocks(data, component):
            rows = _rows(scratch, values)
            np.multiply(rows[1:], rows[1:], out=rows[1:])
            rows[0] = lanes
            lanes = np.add.reduce(rows, axis=0)
        return exact_sum(lanes)


def gather(data: Bytes, component: Component) -> Totals:
    """The totals of numbers wider than a byte."""
    totals = Totals(np.zeros((2, LANES)))
    float_format = FLOATS.get(component)
    scratch = np.empty((2, _num_rows(data, component), LANES))
    start = 0
    for values in _blocks(data, component):
        if float_format is None:
            _count_integers(totals, values)
            finite = values
        else:
            bits = data.view(float_format.bits)[start : start + values.size]
            _count_small(totals, bits, float_format)
            finite = _count_large(totals, values)
        start += values.size
        rows = _rows(scratch[0], finite)
        planes = scratch[:, : len(rows)]
        planes[:, 0] = totals.lanes
        np.multiply(rows[1:], rows[1:], out=planes[1, 1:])
        totals.lanes = np.add.reduce(planes, axis=1)
    return totals


def finished(totals: Totals) -> tuple[Moments, Counts]:
    """Moments and counts of totals; a sum beyond float64 is None, like every moment where nothing is finite."""
    counts = Counts(
        totals.nan,
        totals.positive_infinity,
        totals.negative_infinity,
        totals.zero,
        totals.negative_zero,
        totals.subnormal,
        totals.low_bits_zero,
    )
    if not totals.finite:
        return Moments(None, None, None, None, None), counts
    low, high = totals.min + 0.0, totals.max + 0.0  # -0.0 becomes 0.0: which zero came first says nothing
    total, squares = exact_sum(totals.lanes[0]), exact_sum(totals.lanes[1])
    return Moments(low, high, _or_none(total), _or_none(squares), max(abs(low), abs(high))), counts


def _count_small(totals: Totals, bits: Numbers, layout: FloatFormat) -> None:
    """Zeros and subnormals, and float32 without low bits."""
    magnitude = bits & layout.magnitude
    if np.minimum.reduce(magnitude) < layout.smallest_normal:
        zero = bits.size - int(np.count_nonzero(magnitude))
        totals.zero += zero
        totals.subnormal += int(np.count_nonzero(magnitude < layout.smallest_normal)) - zero
        totals.negative_zero += int(np.count_nonzero(bits == layout.sign)) if zero else 0
    if layout is FLOATS[Component.FLOAT32]:
        totals.low_bits_zero += bits.size - int(np.count_nonzero(bits & LOW_BITS))


def _count_large(totals: Totals, values: Numbers) -> Numbers:
    """The bounds, and the counts of what is not finite; returns the values with 0 in place of those."""
    low, high = float(np.minimum.reduce(values)), float(np.maximum.reduce(values))
    if math.isfinite(low) and math.isfinite(high):
        finite, num_finite = values, values.size
    else:
        mask = np.isfinite(values)
        num_finite = int(np.count_nonzero(mask))
        nan = int(np.count_nonzero(np.isnan(values)))
        positive = int(np.count_nonzero(values == math.inf))
        totals.nan += nan
        totals.positive_infinity += positive
        totals.negative_infinity += values.size - num_finite - nan - positive
        low = float(np.min(values, where=mask, initial=math.inf))
        high = float(np.max(values, where=mask, initial=-math.inf))
        finite = np.where(mask, values, values.dtype.type(0))
    totals.finite += num_finite
    totals.min, totals.max = min(totals.min, low), max(totals.max, high)
    return finite


def _count_integers(totals: Totals, values: Numbers) -> None:
    totals.finite += values.size
    totals.zero += values.size - int(np.count_nonzero(values))
    totals.min = min(totals.min, float(np.minimum.reduce(values)))
    totals.max = max(totals.max, float(np.maximum.reduce(values)))


def _blocks(data: Bytes, component: Component) -> Iterator[Numbers]:
    """The numbers block by block; 16-bit floats as float32, which holds them exactly."""
    narrow = component in (Component.BFLOAT16, Component.FLOAT16)
    bits = data.view(FLOATS[component].bits if narrow else _NUMPY_NAMES[component])
    for start in range(0, bits.size, BLOCK):
        block = bits[start : start + BLOCK]
        if component is Component.BFLOAT16:
            yield np.left_shift(block, 16, dtype="<u4").view("<f4")
        elif component is Component.FLOAT16:
            yield block.view("<f2").astype("<f4")
        else:
            yield block


def _num_rows(data: Bytes, component: Component) -> int:
    """Rows of lanes that a block of the data needs, and one more on top."""
    return 1 - (-min(BLOCK, data.size // _ITEMSIZES[component]) // LANES)


def _rows(scratch: Lanes, values: Numbers) -> Lanes:
    """The values as rows of lanes below an empty first row, the last row filled up with zeros."""
    rows = scratch[: 1 - (-values.size // LANES)]
    flat = rows.reshape(-1)
    flat[LANES : LANES + values.size] = values
    if values.size % LANES:
        flat[LANES + values.size :] = 0.0
    return rows


def exact_sum(values: Lanes) -> float:
    """The sum of a few numbers, rounded once; infinite where it, or a part of it, is beyond float64."""
    try:
        return math.fsum(values.tolist())
    except (OverflowError, ValueError):
        return math.inf


class _ByteTable(Struct, frozen=True):
    """What each of the 256 codes of a one-byte dtype is."""

    values: ByteTable
    finite: npt.NDArray[np.bool_]
    finite_values: ByteTable
    classes: npt.NDArray[np.int64]  # one row per field of `Counts`, 1 where the code is of that class


@cache
def _byte_table(dtype: str) -> _ByteTable:
    values = byte_values(dtype)
    finite = np.isfinite(values)
    never = np.zeros(256, dtype=np.bool_)
    classes = (
        np.isnan(values),
        values == math.inf,
        values == -math.inf,
        values == 0,
        byte_is_negative_zero(dtype),
        byte_is_subnormal(dtype),
        never,
    )
    return _ByteTable(values, finite, np.where(finite, values, 0.0), np.array(classes, dtype=np.int64))


def _of_bytes(counts: npt.NDArray[np.int64], table: _ByteTable) -> tuple[Moments, Counts]:
    classes = Counts(*(table.classes @ counts).tolist())
    present = table.values[(counts > 0) & table.finite]
    if not present.size:
        return Moments(None, None, None, None, None), classes
    low, high = float(present.min()) + 0.0, float(present.max()) + 0.0
    total = exact_sum(table.finite_values * counts)
    squares = exact_sum(table.finite_values**2 * counts)
    return Moments(low, high, total, squares, max(abs(low), abs(high))), classes


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
