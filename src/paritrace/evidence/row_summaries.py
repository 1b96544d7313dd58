"""What is kept of each row of a tensor: fingerprint, norm, samples and, where a choice is made, the margin (CP-27)."""

from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from paritrace.evidence.byte_values import byte_values
from paritrace.evidence.dtypes import Component, dtype_of
from paritrace.evidence.fingerprints import sample_indices

Values = npt.NDArray[np.float64]
RowBytes = npt.NDArray[np.uint8]
NUM_ROW_SAMPLES = 16  # of one row: with its fingerprint and norm it then takes some 80 bytes a token of float32
BLOCK_ELEMENTS = 1 << 18  # widened to float64 at a time: 2 MiB, whatever the size of the vocabulary


class RowSummaries(NamedTuple):
    """The arrays of `TokenRows`, as bytes."""

    bits: bytes
    norms: bytes
    samples: bytes
    tops: bytes
    margins: bytes


def summarise_rows(rows: RowBytes, *, dtype: str, with_top: bool, with_values: bool = True) -> RowSummaries:
    """Summarise rows of equal length, each of them by itself, so that no other row moves a bit of the result.

    Args:
        rows: shape (rows, bytes of one row), contiguous; only read.
        with_top: keep the place of the largest element and its distance to the second, of dtypes that hold numbers.
        with_values: keep norms and samples; token ids are kept by their fingerprints alone.
    """
    known = dtype_of(dtype)
    features = rows.shape[1] // known.itemsize if known.itemsize else 0
    places = np.array(row_sample_indices(features), dtype=np.intp)
    elements = rows.reshape(rows.shape[0], features, known.itemsize)
    numeric = known.component is not None and known.components == 1
    norms, tops, margins = _figures(rows, dtype, with_top=with_top) if numeric and with_values else (b"", b"", b"")
    return RowSummaries(
        bits=_fingerprints(rows),
        norms=norms,
        samples=np.ascontiguousarray(elements[:, places]).tobytes() if with_values else b"",
        tops=tops,
        margins=margins,
    )


def row_values(data: bytes, dtype: str) -> Values | None:
    """The numbers of a dtype as float64; None where it holds none, or pairs of them."""
    known = dtype_of(dtype)
    if known.component is None or known.components != 1:
        return None
    return _widened(np.frombuffer(data, dtype=np.uint8), dtype, known.component)


def _widened(data: RowBytes, dtype: str, component: Component) -> Values:
    match component:
        case Component.BYTE:
            return byte_values(dtype)[data]
        case Component.BFLOAT16:
            wide = data.view("<u2").astype(np.uint32) << np.uint32(16)
            return wide.view(np.float32).astype(np.float64)
        case _:
            return data.view(np.dtype(component.value).newbyteorder("<")).astype(np.float64)


def _fingerprints(rows: RowBytes) -> bytes:
    found = np.fromiter((xxhash.xxh3_64_intdigest(row) for row in rows), dtype="<u8", count=len(rows))
    return found.tobytes()


def _figures(rows: RowBytes, dtype: str, *, with_top: bool) -> tuple[bytes, bytes, bytes]:
    component = dtype_of(dtype).component
    assert component is not None  # the caller asks for dtypes that hold numbers
    features = rows.shape[1] // dtype_of(dtype).itemsize
    at_once = max(1, BLOCK_ELEMENTS // max(features, 1))
    norms, tops, margins = [b""], [b""], [b""]
    for start in range(0, len(rows), at_once):
        part = np.ascontiguousarray(rows[start : start + at_once])
        values = _widened(part.reshape(-1), dtype, component).reshape(len(part), features)
        with np.errstate(over="ignore", invalid="ignore"):
            norms.append(np.sqrt((values * values).sum(axis=1)).astype("<f8").tobytes())
        if with_top and features >= 2:
            top, margin = _top(values)
            tops.append(top)
            margins.append(margin)
    return b"".join(norms), b"".join(tops), b"".join(margins)


def _top(values: Values) -> tuple[bytes, bytes]:
    """The place of each row's largest element, the first of equal ones as argmax has it, and its lead."""
    first = values.argmax(axis=1)
    rows = np.arange(len(values))
    largest = values[rows, first]
    values[rows, first] = -np.inf
    with np.errstate(invalid="ignore"):
        margin = largest - values.max(axis=1)
    return first.astype("<i8").tobytes(), margin.astype("<f8").tobytes()


def row_sample_indices(features: int) -> tuple[int, ...]:
    """The places of a row that are sampled: up to 16 of `sample_indices`, evenly; alike for rows of equal length."""
    known = sample_indices(features)
    return known[:: max(1, ceil(len(known) / NUM_ROW_SAMPLES))]
