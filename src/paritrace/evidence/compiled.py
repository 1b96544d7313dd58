"""The passes of evidence/kernels.py in numba's dialect; imported only when they pay off, because numba is slow to load.

A block of the tensor is read from memory once; the element sum, the bounds and the moments then go over it one after
the other in the first-level cache, each as a loop simple enough to become vector instructions. Sums follow the order
of evidence/statistics.py: no fused multiply-add, no re-association. Casts after each operation keep numbers narrow:
numba widens integers to 64 bits otherwise, which halves the speed.
"""

from typing import Any

import numpy as np
from numba import njit

from paritrace.evidence.mixing import FIRST, GOLDEN, SECOND
from paritrace.evidence.statistics import LANES

BLOCK = 4096  # numbers, a multiple of LANES
LOW, HIGH, NONFINITE, NAN, POSITIVE, NEGATIVE, ZERO, NEGATIVE_ZERO, SUBNORMAL, LOW_BITS_ZERO, NUM_TALLIES = range(11)

U16, U32, U64, I32, I64 = np.uint16, np.uint32, np.uint64, np.int32, np.int64
F32, F64 = np.float32, np.float64
_GOLDEN, _FIRST, _SECOND = U64(GOLDEN), U64(FIRST), U64(SECOND)
_27, _30, _31 = U64(27), U64(30), U64(31)


def cached(function: Any) -> Any:
    """Compiled at the first call, without the interpreter's lock; kept on disk where numba may write."""
    try:
        return njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # neither the package's nor the user's cache folder can be written
        return njit(nogil=True, error_model="numpy")(function)


@cached
def mixes(bits: Any) -> Any:
    """The sum of the mix of each element."""
    total = U64(0)
    for i in range(bits.size):
        value = bits[i]
        z = U64(value) + _GOLDEN
        z = (z ^ (z >> _30)) * _FIRST
        z = (z ^ (z >> _27)) * _SECOND
        total += z ^ (z >> _31)
    return total


@cached
def indexed_mixes(bits: Any, starts: Any, length: Any) -> Any:
    """The sum of mix(element + mix(index)); runs of `length` elements begin at the indices `starts`."""
    total = U64(0)
    for run in range(starts.size):
        first = U64(starts[run])
        part = bits[run * length : (run + 1) * length]
        for i in range(part.size):
            key = first + U64(i) + _GOLDEN
            key = (key ^ (key >> _30)) * _FIRST
            key = (key ^ (key >> _27)) * _SECOND
            z = U64(part[i]) + (key ^ (key >> _31)) + _GOLDEN
            z = (z ^ (z >> _30)) * _FIRST
            z = (z ^ (z >> _27)) * _SECOND
            total += z ^ (z >> _31)
    return total


@cached
def wide_bfloat16(bits: Any, wide: Any) -> None:
    """The same numbers as float32."""
    for i in range(bits.size):
        wide[i] = U32(U32(bits[i]) << U32(16))


@cached
def wide_float16(bits: Any, wide: Any) -> None:
    """The same numbers as float32, by whole numbers only: a flush of subnormals to zero must not change them."""
    numbers = wide.view(F32)
    for i in range(bits.size):
        magnitude = U32(U32(bits[i] & U16(0x7FFF)) << U32(13))
        exponent = U32(magnitude & U32(0x0F800000))
        rebiased = U32(magnitude + U32(112 << 23))
        wide[i] = U32(rebiased + U32(112 << 23)) if exponent == U32(0x0F800000) else rebiased
        if exponent == U32(0):
            wide[i] = U32(magnitude + U32(113 << 23))
            numbers[i] = numbers[i] - F32(2.0**-14)
        wide[i] = U32(wide[i] | U32(U32(bits[i] & U16(0x8000)) << U32(16)))


@cached
def widen(tallies: Any, low: Any, high: Any) -> None:
    """Widens the bounds of the keys."""
    tallies[LOW], tallies[HIGH] = min(tallies[LOW], low), max(tallies[HIGH], high)


@cached
def bounds_32(bits: Any, smallest_normal: Any, tallies: Any) -> Any:
    """The bounds of the finite float32 as ordered keys, and the counts of the rest; whether all are finite."""
    infinity = U32(0x7F800000)
    lowest, highest = U32(0xFFFFFFFF), U32(0)
    low, high = I32(0x7FFFFFFF), I32(-0x80000000)
    no_low_bits = U32(0)
    for i in range(bits.size):
        magnitude = U32(bits[i] & U32(0x7FFFFFFF))
        lowest, highest = min(lowest, magnitude), max(highest, magnitude)
        no_low_bits = U32(no_low_bits + U32(U32(bits[i] & U32(0xFFFF)) == U32(0)))
        signed = I32(bits[i])
        key = I32(signed ^ I32(I32(signed >> I32(31)) & I32(0x7FFFFFFF)))
        low, high = min(low, key), max(high, key)
    tallies[LOW_BITS_ZERO] += I64(no_low_bits)
    if lowest < smallest_normal:
        small_32(bits, smallest_normal, tallies)
    if highest < infinity:
        widen(tallies, I64(low), I64(high))
    else:
        large_32(bits, tallies)
    return highest < infinity


@cached
def small_32(bits: Any, smallest_normal: Any, tallies: Any) -> None:
    """Counts zeros and subnormals."""
    small, zero, negative = U32(0), U32(0), U32(0)
    for i in range(bits.size):
        magnitude = U32(bits[i] & U32(0x7FFFFFFF))
        small = U32(small + U32(magnitude < smallest_normal))
        zero = U32(zero + U32(magnitude == U32(0)))
        negative = U32(negative + U32(bits[i] == U32(0x80000000)))
    tallies[ZERO] += I64(zero)
    tallies[NEGATIVE_ZERO] += I64(negative)
    tallies[SUBNORMAL] += I64(small) - I64(zero)


@cached
def large_32(bits: Any, tallies: Any) -> None:
    """Counts what is not finite, and widens the bounds by the rest."""
    infinity = U32(0x7F800000)
    for i in range(bits.size):
        magnitude = U32(bits[i] & U32(0x7FFFFFFF))
        if magnitude >= infinity:
            tallies[NONFINITE] += 1
            tallies[NAN] += I64(magnitude > infinity)
            tallies[POSITIVE] += I64(bits[i] == infinity)
            tallies[NEGATIVE] += I64(bits[i] == U32(0xFF800000))
        else:
            signed = I32(bits[i])
            key = I64(signed ^ I32(I32(signed >> I32(31)) & I32(0x7FFFFFFF)))
            widen(tallies, key, key)


@cached
def bounds_64(bits: Any, tallies: Any) -> Any:
    """The same for float64."""
    infinity, smallest_normal = U64(0x7FF0000000000000), U64(0x0010000000000000)
    largest = I64(0x7FFFFFFFFFFFFFFF)
    lowest, highest = U64(0xFFFFFFFFFFFFFFFF), U64(0)
    low, high = largest, ~largest
    for i in range(bits.size):
        magnitude = bits[i] & U64(0x7FFFFFFFFFFFFFFF)
        lowest, highest = min(lowest, magnitude), max(highest, magnitude)
        signed = I64(bits[i])
        key = signed ^ ((signed >> I64(63)) & largest)
        low, high = min(low, key), max(high, key)
    if lowest < smallest_normal:
        for i in range(bits.size):
            magnitude = bits[i] & U64(0x7FFFFFFFFFFFFFFF)
            tallies[ZERO] += I64(magnitude == U64(0))
            tallies[NEGATIVE_ZERO] += I64(bits[i] == U64(0x8000000000000000))
            tallies[SUBNORMAL] += I64(magnitude < smallest_normal) - I64(magnitude == U64(0))
    if highest < infinity:
        widen(tallies, low, high)
    else:
        large_64(bits, tallies)
    return highest < infinity


@cached
def large_64(bits: Any, tallies: Any) -> None:
    """Counts what is not finite, and widens the bounds by the rest."""
    infinity, largest = U64(0x7FF0000000000000), I64(0x7FFFFFFFFFFFFFFF)
    for i in range(bits.size):
        magnitude = bits[i] & U64(0x7FFFFFFFFFFFFFFF)
        if magnitude >= infinity:
            tallies[NONFINITE] += 1
            tallies[NAN] += I64(magnitude > infinity)
            tallies[POSITIVE] += I64(bits[i] == infinity)
            tallies[NEGATIVE] += I64(bits[i] == U64(0xFFF0000000000000))
        else:
            signed = I64(bits[i])
            key = signed ^ ((signed >> I64(63)) & largest)
            widen(tallies, key, key)


@cached
def finite_only(numbers: Any) -> Any:
    """A copy with 0 in place of what is not finite."""
    copy = np.empty(numbers.size, numbers.dtype)
    for i in range(numbers.size):
        copy[i] = numbers[i] if abs(numbers[i]) < np.inf else 0
    return copy


@cached
def moments(numbers: Any, sums: Any, squares: Any) -> None:
    """Adds finite numbers and their squares to the lanes, four rows per visit of a lane; lane 0 comes first."""
    fours = numbers.size - numbers.size % (4 * LANES)
    for start in range(0, fours, 4 * LANES):
        for lane in range(LANES):
            a, b = F64(numbers[start + lane]), F64(numbers[start + LANES + lane])
            c, d = F64(numbers[start + 2 * LANES + lane]), F64(numbers[start + 3 * LANES + lane])
            sums[lane] = (((sums[lane] + a) + b) + c) + d
            squares[lane] = (((squares[lane] + a * a) + b * b) + c * c) + d * d
    for start in range(fours, numbers.size, LANES):
        for lane in range(min(LANES, numbers.size - start)):
            value = F64(numbers[start + lane])
            sums[lane] += value
            squares[lane] += value * value


@cached
def only_squares(numbers: Any, squares: Any) -> None:
    """Adds the squares to the lanes, in the same order; NaN and infinity show in the lanes."""
    fours = numbers.size - numbers.size % (4 * LANES)
    for start in range(0, fours, 4 * LANES):
        for lane in range(LANES):
            a, b = F64(numbers[start + lane]), F64(numbers[start + LANES + lane])
            c, d = F64(numbers[start + 2 * LANES + lane]), F64(numbers[start + 3 * LANES + lane])
            squares[lane] = (((squares[lane] + a * a) + b * b) + c * c) + d * d
    for start in range(fours, numbers.size, LANES):
        for lane in range(min(LANES, numbers.size - start)):
            value = F64(numbers[start + lane])
            squares[lane] += value * value


@cached
def summary_float32(bits: Any, sums: Any, squares: Any, tallies: Any) -> Any:
    """The element sum; lanes and tallies are added to. So for the other three formats below."""
    total = U64(0)
    for start in range(0, bits.size, BLOCK):
        block = bits[start : start + BLOCK]
        total += mixes(block)
        finite = bounds_32(block, U32(1 << 23), tallies)
        numbers = block.view(F32)
        moments(numbers if finite else finite_only(numbers), sums, squares)
    return total


@cached
def summary_bfloat16(bits: Any, sums: Any, squares: Any, tallies: Any) -> Any:
    total = U64(0)
    scratch = np.empty(BLOCK, U32)
    for start in range(0, bits.size, BLOCK):
        block = bits[start : start + BLOCK]
        wide = scratch[: block.size]
        wide_bfloat16(block, wide)
        total += mixes(block)
        finite = bounds_32(wide, U32(1 << 23), tallies)
        numbers = wide.view(F32)
        moments(numbers if finite else finite_only(numbers), sums, squares)
    return total


@cached
def summary_float16(bits: Any, sums: Any, squares: Any, tallies: Any) -> Any:
    total = U64(0)
    scratch = np.empty(BLOCK, U32)
    for start in range(0, bits.size, BLOCK):
        block = bits[start : start + BLOCK]
        wide = scratch[: block.size]
        wide_float16(block, wide)
        total += mixes(block)
        finite = bounds_32(wide, U32(113 << 23), tallies)
        numbers = wide.view(F32)
        moments(numbers if finite else finite_only(numbers), sums, squares)
    return total


@cached
def summary_float64(bits: Any, sums: Any, squares: Any, tallies: Any) -> Any:
    total = U64(0)
    for start in range(0, bits.size, BLOCK):
        block = bits[start : start + BLOCK]
        total += mixes(block)
        finite = bounds_64(block, tallies)
        numbers = block.view(F64)
        moments(numbers if finite else finite_only(numbers), sums, squares)
    return total


@cached
def state_float32(bits: Any, squares: Any) -> Any:
    """The element sum; the lanes of the squares are added to. So for the other three formats below."""
    total = U64(0)
    for start in range(0, bits.size, BLOCK):
        block = bits[start : start + BLOCK]
        total += mixes(block)
        only_squares(block.view(F32), squares)
    return total


@cached
def state_bfloat16(bits: Any, squares: Any) -> Any:
    total = U64(0)
    scratch = np.empty(BLOCK, U32)
    for start in range(0, bits.size, BLOCK):
        block = bits[start : start + BLOCK]
        wide = scratch[: block.size]
        wide_bfloat16(block, wide)
        total += mixes(block)
        only_squares(wide.view(F32), squares)
    return total


@cached
def state_float16(bits: Any, squares: Any) -> Any:
    total = U64(0)
    scratch = np.empty(BLOCK, U32)
    for start in range(0, bits.size, BLOCK):
        block = bits[start : start + BLOCK]
        wide = scratch[: block.size]
        wide_float16(block, wide)
        total += mixes(block)
        only_squares(wide.view(F32), squares)
    return total


@cached
def state_float64(bits: Any, squares: Any) -> Any:
    total = U64(0)
    for start in range(0, bits.size, BLOCK):
        block = bits[start : start + BLOCK]
        total += mixes(block)
        only_squares(block.view(F64), squares)
    return total


ELEMENTS = {2: mixes, 4: mixes, 8: mixes}
INDEXED = {1: indexed_mixes, 2: indexed_mixes, 4: indexed_mixes, 8: indexed_mixes}
SUMMARY = {
    "float32": summary_float32,
    "bfloat16": summary_bfloat16,
    "float16": summary_float16,
    "float64": summary_float64,
}
STATE = {"float32": state_float32, "bfloat16": state_bfloat16, "float16": state_float16, "float64": state_float64}
