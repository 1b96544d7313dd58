"""The numbers that the 256 codes of a one-byte dtype stand for, by its torch name (CA-5)."""

import math

import numpy as np
import numpy.typing as npt
from msgspec import Struct

ByteTable = npt.NDArray[np.float64]


class _Mini(Struct, frozen=True):
    """An 8-bit float format: sign, `exponent` bits, the rest mantissa."""

    exponent: int
    bias: int
    infinities: bool  # the highest exponent holds infinities and NaN, as in IEEE 754
    nan_bytes: tuple[int, ...]
    negative_zero: bool


_MINI = {
    "float8_e4m3fn": _Mini(exponent=4, bias=7, infinities=False, nan_bytes=(0x7F, 0xFF), negative_zero=True),
    "float8_e4m3fnuz": _Mini(exponent=4, bias=8, infinities=False, nan_bytes=(0x80,), negative_zero=False),
    "float8_e5m2": _Mini(exponent=5, bias=15, infinities=True, nan_bytes=(), negative_zero=True),
    "float8_e5m2fnuz": _Mini(exponent=5, bias=16, infinities=False, nan_bytes=(0x80,), negative_zero=False),
}


def byte_values(name: str) -> ByteTable:
    """The 256 values of a one-byte dtype, in float64."""
    match name:
        case "bool":
            return np.array([0.0] + [1.0] * 255)
        case "int8" | "qint8":
            return np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float64)
        case "uint8" | "quint8":
            return np.arange(256, dtype=np.float64)
        case "float8_e8m0fnu":
            return np.array([math.ldexp(1.0, code - 127) for code in range(255)] + [math.nan])
        case _:
            return np.array([_decode(code, _MINI[name]) for code in range(256)])


def byte_is_subnormal(name: str) -> npt.NDArray[np.bool_]:
    """Which of the 256 codes of a one-byte dtype are subnormal numbers."""
    if name not in _MINI:
        return np.zeros(256, dtype=np.bool_)
    codes = np.arange(256) & 0x7F
    subnormal: npt.NDArray[np.bool_] = np.logical_and(codes != 0, codes < 1 << (7 - _MINI[name].exponent))
    return subnormal


def byte_is_negative_zero(name: str) -> npt.NDArray[np.bool_]:
    """Which of the 256 codes of a one-byte dtype are a zero with the sign set."""
    codes = np.zeros(256, dtype=np.bool_)
    codes[0x80] = name in _MINI and _MINI[name].negative_zero
    return codes


def _decode(code: int, mini: _Mini) -> float:
    if code in mini.nan_bytes:
        return math.nan
    width = 7 - mini.exponent
    exponent, mantissa = (code & 0x7F) >> width, code & ((1 << width) - 1)
    sign = -1.0 if code & 0x80 else 1.0
    if mini.infinities and exponent == (1 << mini.exponent) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - mini.bias - width)
    return sign * math.ldexp((1 << width) + mantissa, exponent - mini.bias - width)
