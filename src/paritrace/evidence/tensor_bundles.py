"""Safetensors files of several tensors, made piece by piece: the header first, then the bytes of one after another."""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from msgspec import Struct

from paritrace.evidence.dtypes import dtype_of
from paritrace.evidence.tensor_files import ALIGNMENT, LENGTH_BYTES, NAMES


class Piece(Struct, frozen=True):
    """One tensor: dtype by torch name, shape, and its little-endian bytes in logical order."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes | memoryview


def bundle(pieces: Mapping[str, Piece], /) -> Iterator[bytes | memoryview]:
    """Yields the bytes of a file that holds `pieces` by key.

    The widest elements lie first, so that each tensor's bytes are aligned to its elements. A dtype that the format has
    no name for must not be among them (`is_storable`).
    """
    keys = sorted(pieces, key=lambda key: (-dtype_of(pieces[key].dtype).itemsize, key))
    yield _header([(key, pieces[key]) for key in keys])
    for key in keys:
        yield pieces[key].data


def is_storable(dtype: str, /) -> bool:
    """Whether the format has a name for a dtype, given by its torch name."""
    return dtype in NAMES


def _header(pieces: Sequence[tuple[str, Piece]]) -> bytes:
    entries: dict[str, object] = {}
    begin = 0
    for key, piece in pieces:
        end = begin + prod(piece.shape) * dtype_of(piece.dtype).itemsize
        entries[key] = {"dtype": NAMES[piece.dtype], "shape": list(piece.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text
