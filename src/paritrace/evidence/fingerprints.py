"""Diagnostic fingerprints of contiguous bytes: the named schemes, their layout and their laws (CA-6, CA-7, CA-8).

docs/explanation/fingerprints.md says what each scheme sees and misses; tests/evidence/test_fingerprints.py freezes
the values. A match of two fingerprints is never equality of two tensors, only "bits agree (scheme)".
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt
import xxhash
from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.evidence import kernels, mixing
from paritrace.evidence.arrays import Bytes, ReadBuffer, as_bytes, logical_bytes
from paritrace.evidence.boxes import Box, Runs, Tiling, runs_of, tiling

MAX_REGIONS = 64
NUM_SAMPLES = 64
WORD_BYTES = 4

Part = tuple[Sequence[int], Sequence[int]]


class Scheme(StrEnum):
    FLAT_U32_LE_V1 = "flat-u32-le-v1"
    XXH3_64 = "xxh3-64"
    ELEMENTS_U64 = "elements-u64"
    MIX_U32_LE_V1 = "mix-u32-le-v1"
    INDEXED_U64 = "indexed-u64"


class Fingerprint(Struct, frozen=True):
    """A fingerprint with its layout; compare only with one of the same scheme, sizes and number of regions.

    `values`: one number per region, `byte_ranges`: the half-open range of bytes each was made from.
    """

    scheme: Scheme
    logical_nbytes: int
    itemsize: int
    values: tuple[int, ...]
    byte_ranges: tuple[tuple[int, int], ...]


def fingerprint(
    array: object, scheme: str = Scheme.FLAT_U32_LE_V1, regions: int = 1, *, part: Part | None = None
) -> Fingerprint:
    """The fingerprint of the elements of an array in logical (row-major) order.

    `array`: any shape and dtype, on the CPU, through the buffer protocol, DLPack, the array interface or, for torch
    tensors, by address; it is only read. `regions`: 1 to 64. `part`: (shape, offset) of the array, where it is a part
    of a whole of that shape; only the scheme `indexed-u64` looks at it. Reads no setting; results are frozen (CA-20).
    Raises RequestError (Refused) for another number of regions, an unknown scheme, an array without plain bytes, or a
    part that does not lie in its whole.
    """
    named, count = _scheme(scheme), require_regions(regions)
    data, itemsize = logical_bytes(array)
    nbytes = data.nbytes
    runs = _runs(array, nbytes // itemsize, part)
    match named:
        case Scheme.FLAT_U32_LE_V1:
            values, unit = xor_regions(data, count), WORD_BYTES
        case Scheme.XXH3_64:
            values, unit = strong_regions(data, count), WORD_BYTES
        case Scheme.MIX_U32_LE_V1:
            values, unit = mix_regions(data, count), WORD_BYTES
        case Scheme.ELEMENTS_U64:
            ranges = region_ranges(nbytes, count, unit=itemsize)
            values, unit = (
                tuple(elements(data[start:stop], itemsize) for start, stop in ranges),
                itemsize,
            )
        case Scheme.INDEXED_U64:
            ranges = region_ranges(nbytes, count, unit=itemsize)
            values = tuple(_indexed_range(data, itemsize, runs=runs, of=between) for between in ranges)
            unit = itemsize
    return Fingerprint(named, nbytes, itemsize, values, region_ranges(nbytes, count, unit=unit))


def require_regions(regions: int) -> int:
    """`regions` if it is 1 to 64 (CA-20); RequestError (Refused) otherwise."""
    if type(regions) is not int or not 1 <= regions <= MAX_REGIONS:
        raise RequestError(
            f"regions must be a whole number from 1 to {MAX_REGIONS}, not {regions!r}",
            code="fingerprint_regions",
            fix=f"give a number of regions from 1 to {MAX_REGIONS}",
        )
    return regions


def strong(buffer: ReadBuffer) -> int:
    """`xxh3-64` of the bytes, seed 0: order-sensitive."""
    return xxhash.xxh3_64_intdigest(cast(memoryview, buffer))


def strong_regions(buffer: ReadBuffer, regions: int) -> tuple[int, ...]:
    """`xxh3-64` of each region of `region_ranges`."""
    data = as_bytes(buffer).data
    digest = xxhash.xxh3_64_intdigest
    return tuple([digest(data[start:stop]) for start, stop in region_ranges(data.nbytes, regions)])


def xor_regions(buffer: ReadBuffer, regions: int) -> tuple[int, ...]:
    """`flat-u32-le-v1`: the XOR of the little-endian 32-bit words of each region."""
    return tuple(xor_words(buffer, regions).tolist())


def xor_words(buffer: ReadBuffer, regions: int) -> npt.NDArray[np.uint32]:
    """`flat-u32-le-v1` as an array: contiguous regions of words, the first `words mod regions` one word longer."""
    data = as_bytes(buffer)
    whole, tail = divmod(data.size, WORD_BYTES)
    out = _xor_whole_words(data[: whole * WORD_BYTES].view("<u4"), regions, num_words=whole + (tail > 0))
    if tail:
        last = min(regions, whole + 1) - 1
        out[last] ^= int.from_bytes(data[whole * WORD_BYTES :].tobytes(), "little")
    return out


def _xor_whole_words(words: npt.NDArray[np.uint32], regions: int, *, num_words: int) -> npt.NDArray[np.uint32]:
    """The XOR per region of a layout of `num_words` words, of which `words` may lack the last (a partial one)."""
    out = np.zeros(regions, dtype="<u4")
    length, longer = divmod(num_words, regions)
    xor = np.bitwise_xor.reduce
    full, rest = (longer, regions - longer) if longer else (0, regions)
    split = full * (length + 1)
    if words.size == num_words:
        if full:
            xor(words[:split].reshape(full, length + 1), axis=1, out=out[:full])
        if length:
            xor(words[split:].reshape(rest, length), axis=1, out=out[full:])
        return out
    for region, (start, stop) in enumerate(region_ranges(num_words * WORD_BYTES, regions)):
        out[region] = xor(words[start // WORD_BYTES : stop // WORD_BYTES])
    return out


def fold_xor(value: int, itemsize: int) -> int:
    """An XOR of words folded to the width of an element, so that it adds up over shards of narrow dtypes (CA-8)."""
    match itemsize:
        case 1:
            half = value ^ (value >> 16)
            return (half ^ (half >> 8)) & 0xFF
        case 2:
            return (value ^ (value >> 16)) & 0xFFFF
        case _:
            return value


def elements(buffer: ReadBuffer, itemsize: int) -> int:
    """`elements-u64`: the sum mod 2^64 of a mix of each element: blind to order, additive over any partition.

    Elements of 1, 2, 4 or 8 bytes are zero-extended; of 16 bytes, the mix of the low half is added to the high half
    and mixed again.
    """
    data = as_bytes(buffer)
    total = kernels.element_sum(data, itemsize)
    return mixing.sum_of_mixes(data, itemsize) if total is None else total


def indexed(buffer: ReadBuffer, itemsize: int, *, runs: Runs | None = None) -> int:
    """`indexed-u64`: the sum mod 2^64 of mix(element + mix(index)): sees order, and additive over any partition.

    `runs`: where the elements stand in the whole (`boxes.runs_of`); None: they are the whole. Elements of 1, 2, 4 or 8
    bytes are zero-extended; of 16 bytes, mix(mix(low half + mix(index)) + high half).
    """
    data = as_bytes(buffer)
    if not data.size:
        return 0
    placed = Runs(data.size // itemsize, np.zeros(1, dtype=np.int64)) if runs is None else runs
    total = kernels.indexed_sum(data, itemsize, starts=placed.starts, length=placed.length)
    if total is None:
        total = mixing.sum_of_indexed_mixes(data, itemsize, starts=placed.starts, length=placed.length)
    return total


def _indexed_range(data: Bytes, itemsize: int, *, runs: Runs, of: tuple[int, int]) -> int:
    """`indexed-u64` of one region of a part."""
    if of[0] == of[1]:
        return 0
    if of == (0, data.size):
        return indexed(data, itemsize, runs=runs)
    first, end = of[0] // itemsize, of[1] // itemsize
    places = np.arange(first, end, dtype=np.int64)
    starts = runs.starts[places // runs.length] + places % runs.length
    return indexed(data[of[0] : of[1]], itemsize, runs=Runs(1, starts))


def _runs(array: object, num_elements: int, part: Part | None) -> Runs:
    """Where the elements of an array stand in its whole."""
    if part is None:
        return Runs(num_elements, np.zeros(1, dtype=np.int64))
    shape, offset = tuple(part[0]), tuple(part[1])
    box = Box(offset, tuple(int(size) for size in getattr(array, "shape", (num_elements,))))
    if box.num_elements != num_elements or tiling(shape, (box,)) is Tiling.OUTSIDE:
        raise RequestError(
            f"a part of shape {box.shape} at {offset} does not lie in a whole of shape {shape}",
            code="fingerprint_part",
            fix="give part=(shape of the whole, offset of the part), one number per dimension",
        )
    return runs_of(box, shape)


def mix_regions(buffer: ReadBuffer, regions: int) -> tuple[int, ...]:
    """`mix-u32-le-v1`: the XOR per region of a mix of each word with its index in the whole: order-sensitive.

    The XOR of all regions is the value of one region over the whole.
    """
    data = as_bytes(buffer)
    missing = -data.size % WORD_BYTES
    words = (np.concatenate((data, np.zeros(missing, np.uint8))) if missing else data).view("<u4")
    ranges = region_ranges(words.nbytes, regions)
    return tuple(mixing.xor_of_indexed_mixes(words, start // WORD_BYTES, stop // WORD_BYTES) for start, stop in ranges)


@lru_cache(maxsize=1024)
def region_ranges(logical_nbytes: int, regions: int, unit: int = WORD_BYTES) -> tuple[tuple[int, int], ...]:
    """The half-open byte range of each region; the first `units mod regions` regions are one unit longer."""
    length, longer = divmod(-(-logical_nbytes // unit), regions)
    starts = [unit * (region * length + min(region, longer)) for region in range(regions + 1)]
    clipped = [min(start, logical_nbytes) for start in starts]
    return tuple(pairwise(clipped))


@lru_cache(maxsize=1024)
def sample_indices(num_elements: int) -> tuple[int, ...]:
    """The logical indices of the K = 64 sampled elements, rising; all of them when there are no more (CA-28).

    One index in each of 64 equal strata, at a place given by the mix of the stratum's number.
    """
    if num_elements <= NUM_SAMPLES:
        return tuple(range(num_elements))
    bounds = [stratum * num_elements // NUM_SAMPLES for stratum in range(NUM_SAMPLES + 1)]
    return tuple(
        low + (mixing.mix(stratum) * (high - low) >> 64) for stratum, (low, high) in enumerate(pairwise(bounds))
    )


def _scheme(name: str) -> Scheme:
    if name in set(Scheme):
        return Scheme(name)
    raise RequestError(
        f"no fingerprint scheme is named {name!r}",
        code="fingerprint_scheme",
        fix=f"use one of {', '.join(Scheme)}",
    )
