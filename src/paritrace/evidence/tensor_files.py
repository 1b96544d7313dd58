"""The safetensors format: headers made and read, with every offset checked; bytes are left to the caller (ADR 0012)."""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

from msgspec import Struct

from paritrace.errors import EvidenceError
from paritrace.evidence.dtypes import dtype_of

LENGTH_BYTES = 8  # a little-endian length of the header before it
MAX_HEADER_BYTES = 100_000_000  # the limit that the format's own reader has
ALIGNMENT = 8
NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "int64": "I64",
    "uint64": "U64",
    "float64": "F64",
    "complex64": "C64",
}
_TORCH = {theirs: ours for ours, theirs in NAMES.items()}
_DTYPE, _SHAPE = "paritrace.dtype", "paritrace.shape"  # in the metadata, of what the format has no name for


class Stored(Struct, frozen=True):
    """One tensor of a file: dtype by torch name, and where its bytes lie from the beginning of the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    num_bytes: int


def header_of(key: str, *, dtype: str, shape: tuple[int, ...], itemsize: int) -> bytes:
    """The bytes before the elements of a file with one tensor.

    A dtype that the format does not know (complex128, quantised) is stored as U8 with its bytes as a last dim; the
    metadata give dtype and shape.
    """
    known = dtype in NAMES
    num_bytes = prod(shape) * itemsize
    entry = {
        "dtype": NAMES.get(dtype, "U8"),
        "shape": list(shape) if known else [*shape, itemsize],
        "data_offsets": [0, num_bytes],
    }
    body: dict[str, object] = {} if known else {"__metadata__": {_DTYPE: dtype, _SHAPE: json.dumps(list(shape))}}
    text = json.dumps({**body, key: entry}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text


class Part(Struct, frozen=True):
    """One tensor of a file with several: its bytes follow those of the parts before it."""

    key: str
    dtype: str
    shape: tuple[int, ...]
    num_bytes: int


def header_of_parts(parts: Sequence[Part]) -> bytes:
    """The bytes before the elements of a file with several tensors, in their order.

    Raises:
        ValueError: of a dtype that the format has no name for.
    """
    unknown = sorted({part.dtype for part in parts} - NAMES.keys())
    if unknown:
        raise ValueError(f"a file of tensors has no {', '.join(unknown)}")
    ends = list(accumulate(part.num_bytes for part in parts))
    entries = {
        part.key: {"dtype": NAMES[part.dtype], "shape": list(part.shape), "data_offsets": [end - part.num_bytes, end]}
        for part, end in zip(parts, ends, strict=True)
    }
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text


def header_length(prefix: bytes, *, name: str) -> int:
    """The length of the header's text, from a file's first 8 bytes.

    Raises:
        EvidenceError: Refused, code `bad_tensor_file`.
    """
    length = int.from_bytes(prefix, "little")
    if len(prefix) < LENGTH_BYTES or length > MAX_HEADER_BYTES:
        raise bad(name, "it does not begin with the length of a header")
    return length


def stored_in(text: bytes, *, num_bytes: int, name: str) -> dict[str, Stored]:
    """The tensors that a header names; every one lies inside the file's `num_bytes` and has the bytes of its shape.

    Raises:
        EvidenceError: Refused, code `bad_tensor_file`.
    """
    begin = LENGTH_BYTES + len(text)
    try:
        plain = json.loads(text)
        metadata = plain.pop("__metadata__", {})
        found = {str(key): _entry(entry, begin) for key, entry in plain.items()}
        if _DTYPE in metadata and len(found) == 1:
            key, stored = next(iter(found.items()))
            shape = tuple(_size(size) for size in json.loads(metadata[_SHAPE]))
            found = {key: Stored(str(metadata[_DTYPE]), shape, stored.begin, stored.num_bytes)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise bad(name, f"its header is not one ({type(error).__name__})") from error
    for key, stored in found.items():
        _require_inside(key, stored, num_bytes=num_bytes, name=name)
    return found


def bad(name: str, why: str) -> EvidenceError:
    """The error for a file that cannot be used."""
    return EvidenceError(
        f"{name} is not a whole safetensors file: {why}",
        code="bad_tensor_file",
        fix="restore the file from a copy, or name a file that a safetensors library wrote",
    )


def _entry(entry: Mapping[str, Any], begin: int) -> Stored:
    first, last = (_size(offset) for offset in entry["data_offsets"])
    shape = tuple(_size(size) for size in entry["shape"])
    return Stored(_TORCH[entry["dtype"]], shape, begin + first, last - first)


def _size(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no size")
    return value


def _require_inside(key: str, stored: Stored, *, num_bytes: int, name: str) -> None:
    expected = prod(stored.shape) * dtype_of(stored.dtype).itemsize
    whole = stored.num_bytes >= 0 and stored.begin + stored.num_bytes <= num_bytes
    known = stored.dtype in NAMES or dtype_of(stored.dtype).component is not None
    if not whole or (known and expected != stored.num_bytes):
        raise bad(name, f"the bytes of {key[:80]!r} do not lie in it")
