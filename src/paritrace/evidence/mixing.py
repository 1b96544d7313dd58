"""The 64-bit mix behind `elements-u64`, `indexed-u64` and `mix-u32-le-v1`: the finaliser of splitmix64.

`mix(x)`: z = x + 0x9E3779B97F4A7C15; z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9; z = (z ^ z >> 27) * 0x94D049BB133111EB;
z ^ z >> 31, all mod 2^64. So `mix(0)` is the first output of splitmix64 with seed 0: e220a8397b1dcdaf.
Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

import numpy as np
import numpy.typing as npt

from paritrace.evidence.arrays import Bytes

MASK = (1 << 64) - 1
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
BLOCK = 15 << 10  # elements at a time: in 64 bits 120 KiB, below the size from which malloc maps fresh pages

_GOLDEN, _FIRST, _SECOND = np.uint64(GOLDEN), np.uint64(FIRST), np.uint64(SECOND)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_BITS = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8", 16: "<u8"}

Words64 = npt.NDArray[np.uint64]


def mix(value: int) -> int:
    """The mix of one number of 64 bits."""
    z = (value + GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * FIRST) & MASK
    z = ((z ^ (z >> 27)) * SECOND) & MASK
    return z ^ (z >> 31)


_BYTE_MIXES = np.array([mix(byte) for byte in range(256)], dtype=np.uint64)


def sum_of_mixes(data: Bytes, itemsize: int) -> int:
    """The sum mod 2^64 of the mix of each element of `itemsize` bytes (16: two halves, chained)."""
    if itemsize == 1:
        return int((byte_counts(data).astype(np.uint64) * _BYTE_MIXES).sum())
    bits = data.view(_BITS[itemsize])
    if itemsize == 16:
        return _sum_of_chained(bits)
    total = 0
    for start in range(0, bits.size, BLOCK):
        total += int(np.add.reduce(mixed(bits[start : start + BLOCK])))
    return total & MASK


def byte_counts(data: Bytes) -> npt.NDArray[np.int64]:
    """How often each of the 256 bytes occurs."""
    counts = np.zeros(256, dtype=np.int64)
    for start in range(0, data.size, BLOCK):
        counts += np.bincount(data[start : start + BLOCK], minlength=256)
    return counts


def xor_of_indexed_mixes(words: npt.NDArray[np.uint32], start: int, stop: int) -> int:
    """The XOR over words[start:stop] of mix(word + 2^32 * index), index counted from the start of `words`."""
    result = 0
    for low in range(start, stop, BLOCK):
        high = min(low + BLOCK, stop)
        keyed = np.arange(low, high, dtype=np.uint64) << _32
        keyed += words[low:high]
        result ^= int(np.bitwise_xor.reduce(mixed(keyed)))
    return result


def mixed(bits: npt.NDArray[np.unsignedinteger]) -> Words64:
    """The mix of each number, zero-extended to 64 bits, as a new array."""
    z: Words64 = np.add(bits, _GOLDEN, dtype=np.uint64)
    t: Words64 = np.right_shift(z, _30)
    np.bitwise_xor(z, t, out=z)
    np.multiply(z, _FIRST, out=z)
    np.right_shift(z, _27, out=t)
    np.bitwise_xor(z, t, out=z)
    np.multiply(z, _SECOND, out=z)
    np.right_shift(z, _31, out=t)
    np.bitwise_xor(z, t, out=z)
    return z


def sum_of_indexed_mixes(data: Bytes, itemsize: int, *, starts: npt.NDArray[np.int64], length: int) -> int:
    """The sum mod 2^64 of mix(element + mix(index)); 16 bytes: mix(mix(low half + mix(index)) + high half).

    The elements come in runs of `length`; `starts` are the indices of the first element of each run.
    """
    width = 2 if itemsize == 16 else 1
    bits = data.view(_BITS[itemsize])
    total = 0
    for low in range(0, bits.size // width, BLOCK):
        block = bits[low * width : (low + BLOCK) * width]
        places = np.arange(low, low + block.size // width, dtype=np.int64)
        runs = places // length
        keys = mixed((starts[runs] + (places - runs * length)).view(np.uint64))
        if itemsize == 16:
            keys = mixed(keys + block[0::2]) + block[1::2]
        else:
            keys += block
        total += int(np.add.reduce(mixed(keys)))
    return total & MASK


def _sum_of_chained(halves: Words64) -> int:
    total = 0
    for start in range(0, halves.size, 2 * BLOCK):
        block = halves[start : start + 2 * BLOCK]
        total += int(mixed(mixed(block[0::2]) + block[1::2]).sum())
    return total & MASK
