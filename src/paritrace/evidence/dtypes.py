"""How every dense dtype is stored, by its torch name (CA-5). Read before a workload has imported NumPy: it does not."""

from enum import StrEnum

from msgspec import Struct


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


_MINI_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_BYTES = ("bool", "int8", "uint8", "qint8", "quint8", "float8_e8m0fnu", *_MINI_FLOATS)
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
