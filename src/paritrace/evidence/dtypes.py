"""What the bytes of one element mean, for every dense dtype by its torch name (CA-5)."""

import math
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

ByteTable = npt.NDArray[np.float64]


class Component(StrEnum):
    """The numbers that statistics run over; the value is NumPy's name of the bits they are read as."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    UINT64 = "uint64"
    UINT32 = "uint32"
    UINT16 = "uint16"
    BYTE = "byte"  # one byte per element: the 256 values are in a table


class Dtype(Struct, frozen=True):
    """`itemsize` in bytes; `components` numbers per element (complex: two); without statistics `component` is None."""

    itemsize: int
    component: Component | None
    components: int = 1


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
_BYTES = ("bool", "int8", "uint8", "qint8", "quint8", "float8_e8m0fnu", *_MINI)
_INTEGERS = ("int64", "int32", "int16", "uint64", "uint32", "uint16")
_FLOATS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
_COMPLEX = {"complex128": "float64", "complex64": "float32", "complex32": "float16"}

DTYPES: dict[str, Dtype] = (
    {name: Dtype(itemsize=1, component=Component.BYTE) for name in _BYTES}
    | {name: Dtype(itemsize=int(name.lstrip("uint")) // 8, component=Component(name)) for name in _INTEGERS}
    | {name: Dtype(itemsize=size, component=Component(name)) for name, size in _FLOATS.items()}
    | {name: Dtype(2 * _FLOATS[part], Component(part), components=2) for name, part in _COMPLEX.items()}
    | {"qint32": Dtype(itemsize=4, component=Component.INT32)}
)


UNKNOWN = Dtype(itemsize=1, component=None)


def dtype_of(name: str) -> Dtype:
    """The entry of a dtype by torch name; packed and unknown dtypes are single bytes without statistics."""
    return DTYPES.get(name, UNKNOWN)


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
