"""The summary of one slot: every fingerprint, the statistics and the samples of its bytes (CA-5 to CA-7, CA-28)."""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from paritrace.errors import InternalError
from paritrace.evidence import kernels, statistics
from paritrace.evidence.arrays import Bytes, ReadBuffer, as_bytes
from paritrace.evidence.calls import Counts, Moments
from paritrace.evidence.dtypes import Dtype, dtype_of
from paritrace.evidence.fingerprints import (
    elements,
    sample_indices,
    strong,
    strong_regions,
    xor_words,
)
from paritrace.evidence.gaps import CaptureGap, Gap

_BITS = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8", 16: "<c16"}


StatisticsGap = Gap[CaptureGap] | None


class SlotSummary(Struct, frozen=True, gc=False):
    """The fields of `calls.Detail` that the bytes decide, in the same spelling."""

    bits: str
    xor: str
    regions: str
    elements: str
    moments: Moments | None
    counts: Counts | None
    samples: str
    degenerate: bool
    statistics_gap: StatisticsGap


def summarise(
    buffer: ReadBuffer,
    *,
    dtype: str,
    num_elements: int,
    regions: int,
    bits: str | None = None,
    samples: tuple[int, ...] | None = None,
) -> SlotSummary:
    """The summary of contiguous bytes that hold `num_elements` of the torch dtype named `dtype`.

    `bits`: the strong fingerprint of these bytes, 16 hex digits, where the caller has just taken it.
    `samples`: the logical indices of the elements to sample, where these bytes are a part of something larger; else
    those of `sample_indices(num_elements)`.
    A dtype without statistics gets `unsupported_dtype` in their place. Nothing is written or kept.
    """
    data = as_bytes(buffer)
    known = dtype_of(dtype)
    if num_elements * known.itemsize != data.size and known.component is not None:
        raise _wrong_size(data.size, dtype, num_elements)
    words = xor_words(data, regions).astype(">u4").tobytes().hex()
    sampled = _samples(data, known.itemsize, samples)
    element_total, moments, counts, gap = _contents(data, dtype, known)
    return SlotSummary(
        bits=f"{strong(data):016x}" if bits is None else bits,
        xor=words,
        regions=_region_format(regions) % strong_regions(data, regions),
        elements=f"{element_total:016x}",
        moments=moments,
        counts=counts,
        samples=sampled.hex(),
        degenerate=data.size > 0 and (not words.strip("0") or _constant(data, sampled, known)),
        statistics_gap=gap,
    )


def sampled_elements(buffer: ReadBuffer, dtype: str, samples: tuple[int, ...] | None = None) -> str:
    """The samples of contiguous bytes as `summarise` takes them, in hex (CA-28)."""
    return _samples(as_bytes(buffer), dtype_of(dtype).itemsize, samples).hex()


def element_sum(buffer: ReadBuffer, dtype: str) -> int:
    """`elements-u64` of contiguous bytes of a torch dtype, for the state inventory (CA-29)."""
    return elements(buffer, dtype_of(dtype).itemsize)


def elements_and_squares(buffer: ReadBuffer, dtype: str) -> tuple[int, float]:
    """`elements-u64` and the sum of squares, for the state inventory and the gradient norm (CA-29).

    The sum is NaN where a value is NaN and for a dtype that has no statistics; it is infinite where a value is, or
    where it is beyond float64. So a gradient norm never hides what is not finite.
    """
    data = as_bytes(buffer)
    known = dtype_of(dtype)
    if known.component is None:
        return elements(data, known.itemsize), math.nan
    fused = kernels.state(data, known.component) if known.components == 1 else None
    if fused is not None:
        return fused[0], statistics.exact_sum(fused[1])
    squares = statistics.sum_of_squares(data, dtype=dtype, component=known.component)
    return elements(data, known.itemsize), squares


def _contents(data: Bytes, dtype: str, known: Dtype) -> tuple[int, Moments | None, Counts | None, StatisticsGap]:
    """The element sum with the statistics, or with the gap in their place."""
    if known.component is None:
        return elements(data, known.itemsize), None, None, Gap(CaptureGap.UNSUPPORTED_DTYPE, dtype)
    fused = kernels.summary(data, known.component) if known.components == 1 else None
    if fused is not None:
        return fused[0], *statistics.finished(fused[1]), None
    found = statistics.statistics(data, dtype=dtype, component=known.component)
    return elements(data, known.itemsize), *found, None


def _wrong_size(nbytes: int, dtype: str, num_elements: int) -> InternalError:
    return InternalError(
        f"{nbytes} bytes cannot hold {num_elements} elements of {dtype}",
        code="summary_size",
        fix="report this with the kind of the tensor",
    )


def _samples(data: Bytes, itemsize: int, indices: tuple[int, ...] | None) -> bytes:
    """The sampled elements, one after the other, in their own dtype."""
    bits = data.view(_BITS[itemsize])
    return bits[_sample_places(bits.size) if indices is None else np.array(indices, dtype=np.intp)].tobytes()


@lru_cache(maxsize=1024)
def _sample_places(num_elements: int) -> npt.NDArray[np.intp]:
    return np.array(sample_indices(num_elements), dtype=np.intp)


def _constant(data: Bytes, samples: bytes, known: Dtype) -> bool:
    """Whether at least two elements are there and all have the same bits; the samples rule most tensors out."""
    first = samples[: known.itemsize]
    if data.size <= known.itemsize or samples != first * (len(samples) // known.itemsize):
        return False
    bits = data.view(_BITS[known.itemsize] if known.itemsize < 16 else "V16")
    return bool((bits == bits[0]).all())


@lru_cache(maxsize=64)
def _region_format(regions: int) -> str:
    return "%016x" * regions
