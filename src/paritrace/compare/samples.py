"""What 64 sampled elements say about the size of a difference: relative error, bias, ULP (CA-28)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paritrace.evidence.arrays import Bytes
from paritrace.evidence.byte_values import byte_values
from paritrace.evidence.dtypes import Component, dtype_of

Values = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
_ULP_BITS = {Component.FLOAT64: 64, Component.FLOAT32: 32, Component.FLOAT16: 16, Component.BFLOAT16: 16}
MIN_BIAS_SAMPLES = 8  # with fewer a mean of signed errors says nothing about a shift


class Sampled(NamedTuple):
    """Sampled elements of both sides at the same places, as float64; `codes` order floats of one dtype by value."""

    baseline: Values
    candidate: Values
    codes: tuple[Codes, Codes] | None


class Size(NamedTuple):
    """How large a difference is on the samples; None where it cannot be said."""

    relative_error: float | None
    bias: float | None
    max_ulp: int | None
    num_differing: int


def values_of(samples: str, dtype: str) -> Values | None:
    """Decode hex samples to float64; complex numbers give two values each, None for dtypes without numbers."""
    return numbers_of(np.frombuffer(bytes.fromhex(samples), dtype=np.uint8), dtype)


def numbers_of(data: Bytes, dtype: str) -> Values | None:
    """The same for the bytes of elements."""
    match dtype_of(dtype).component:
        case None:
            return None
        case Component.BYTE:
            return byte_values(dtype)[data]
        case Component.BFLOAT16:
            wide = data.view("<u2").astype(np.uint32) << np.uint32(16)
            return wide.view(np.float32).astype(np.float64)
        case component:
            return data.view(np.dtype(component.value).newbyteorder("<")).astype(np.float64)


def sampled(baseline: tuple[str, str], candidate: tuple[str, str]) -> Sampled | None:
    """Decode both sides' (samples, dtype); None when they do not cover the same places or hold no numbers."""
    left, right = values_of(*baseline), values_of(*candidate)
    if left is None or right is None or left.size != right.size or not left.size:
        return None
    codes = None
    if baseline[1] == candidate[1]:
        ours, theirs = _codes(*baseline), _codes(*candidate)
        codes = None if ours is None or theirs is None else (ours, theirs)
    return Sampled(left, right, codes)


def size_of(pair: Sampled, *, differing: int) -> Size:
    """Estimate relative error (L2 over samples), bias (mean signed relative error) and the largest ULP distance."""
    finite = np.isfinite(pair.baseline) & np.isfinite(pair.candidate)
    left, right = pair.baseline[finite], pair.candidate[finite]
    scale = max(float(np.abs(left).max(initial=0.0)), float(np.abs(right).max(initial=0.0)))
    if not left.size or scale == 0.0:
        return Size(None, None, None, differing)
    left, right = left / scale, right / scale
    norm = float(np.sqrt(np.sum(left * left)))
    error = float(np.sqrt(np.sum((right - left) ** 2)))
    relative = error / norm if norm > 0.0 else None
    return Size(relative, _bias(left, right), _max_ulp(pair, finite), differing)


def num_distinct(pair: Sampled) -> int:
    """How many different values were sampled, on both sides together: the same places hold other elements there."""
    rising = np.sort(np.concatenate([pair.baseline, pair.candidate]))  # every NaN stands last, and they count as one
    numbers = rising[~np.isnan(rising)]
    steps = int(np.count_nonzero(numbers[1:] != numbers[:-1]))
    return steps + int(numbers.size > 0) + int(numbers.size < rising.size)


def constant_scale(pair: Sampled) -> float | None:
    """The factor between the sides when every non-zero sample shows the same one, else None."""
    finite = np.isfinite(pair.baseline) & np.isfinite(pair.candidate)
    left, right = pair.baseline[finite], pair.candidate[finite]
    both = (left != 0) & (right != 0)
    if int(both.sum()) < 2 or bool(((left == 0) != (right == 0)).any()):
        return None
    ratios = right[both] / left[both]
    middle = _median(ratios)
    spread = float(np.abs(ratios / middle - 1).max()) if middle else 1.0
    if middle <= 0 or spread > SCALE_SPREAD or abs(middle - 1) <= 4 * SCALE_SPREAD:
        return None
    return middle


SCALE_SPREAD = 2.0**-18  # a few float32 roundings: ratios that agree closer are one factor


def signs_only(pair: Sampled) -> bool:
    """Whether the sides have equal magnitudes and some sample another sign."""
    return _equal(np.abs(pair.baseline), np.abs(pair.candidate)) and not same_values(pair)


def same_values(pair: Sampled) -> bool:
    """Whether all samples are equal as numbers, whatever their bits (-0.0 and 0.0, NaN payloads)."""
    return _equal(pair.baseline, pair.candidate)


def _equal(left: Values, right: Values) -> bool:
    """As `np.array_equal` says of values of which NaN equals NaN, in a third of its time for so few."""
    other = left != right
    return not bool((other & ~(np.isnan(left) & np.isnan(right))).any())


def _median(values: Values) -> float:
    """As `np.median` says of numbers, without loading `numpy.ma`."""
    rising = np.sort(values)
    return float(np.mean(rising[(len(rising) - 1) // 2 : len(rising) // 2 + 1]))


def _bias(left: Values, right: Values) -> float | None:
    both = left != 0
    if int(both.sum()) < MIN_BIAS_SAMPLES:
        return None
    return float(np.mean((right[both] - left[both]) / np.abs(left[both])))


def _codes(samples: str, dtype: str) -> Codes | None:
    return ordered_codes(np.frombuffer(bytes.fromhex(samples), dtype=np.uint8), dtype)


def ordered_codes(data: Bytes, dtype: str) -> Codes | None:
    """The bits of floats as integers that rise with the value; None for other dtypes."""
    known = dtype_of(dtype)
    if known.component is None or known.component not in _ULP_BITS:
        return None
    width = _ULP_BITS[known.component]
    raw = data.view(f"<u{width // 8}")
    signed = raw.astype(np.int64) if width < 64 else raw.view(np.int64)
    low = np.int64((1 << (width - 1)) - 1)
    negative = raw >> np.array(width - 1, dtype=raw.dtype) != 0
    magnitude = signed & low
    return np.where(negative, -magnitude, magnitude)


def _max_ulp(pair: Sampled, finite: npt.NDArray[np.bool_]) -> int | None:
    if pair.codes is None:
        return None
    keep = finite if finite.size == pair.codes[0].size else np.ones(pair.codes[0].size, dtype=np.bool_)
    left, right = pair.codes[0][keep].tolist(), pair.codes[1][keep].tolist()
    return max((abs(b - a) for a, b in zip(left, right, strict=True)), default=None)
