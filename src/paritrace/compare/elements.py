"""Comparing two tensors element by element, in pieces of bounded size, what is not finite first (CP-11)."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from paritrace.compare.element_figures import ElementFigures, Index
from paritrace.compare.samples import numbers_of, ordered_codes
from paritrace.compare.ulp_histogram import UlpHistogram
from paritrace.evidence.dtypes import Component, dtype_of
from paritrace.runs.tensors import WholeTensor

CHUNK_ELEMENTS = 1 << 18  # some 20 MB of intermediate arrays, whatever the tensor
_FLOATS = frozenset({Component.FLOAT64, Component.FLOAT32, Component.FLOAT16, Component.BFLOAT16})
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


def not_comparable(baseline: WholeTensor, candidate: WholeTensor) -> str:
    """Why two tensors have no element-wise figures; empty when they have. Dtype and shape come before any value."""
    if baseline.shape != candidate.shape:
        return f"the shapes differ: {baseline.shape} and {candidate.shape}"
    for tensor in (baseline, candidate):
        if dtype_of(tensor.dtype).component is None:
            return f"{tensor.dtype} has no numbers to compare"
    if baseline.dtype != candidate.dtype and not (_has_floats(baseline.dtype) and _has_floats(candidate.dtype)):
        return f"{baseline.dtype} and {candidate.dtype} are not the same kind of number"
    return ""


def mask_misfit(shape: Index, mask: WholeTensor) -> str:
    """Why a mask does not fit a tensor: its dims have to be the tensor's first dims, and it holds whole numbers."""
    if dtype_of(mask.dtype).component in _FLOATS or mask.array.dtype.kind not in "biu":
        return f"a mask of {mask.dtype}: it has to be bool or whole numbers"
    if shape[: len(mask.shape)] != mask.shape:
        return f"a mask of shape {mask.shape} does not fit {shape}: its dims have to be the tensor's first"
    return ""


def element_figures(
    baseline: WholeTensor, candidate: WholeTensor, *, mask: WholeTensor | None = None, mask_name: str = ""
) -> ElementFigures:
    """The figures of two comparable tensors; elements where the mask is 0 are padding and left out."""
    tally = _Tally(baseline, candidate)
    total = int(np.prod(baseline.shape, dtype=np.int64))
    trailing = 1 if mask is None else int(np.prod(baseline.shape[len(mask.shape) :], dtype=np.int64))
    for begin in range(0, total, CHUNK_ELEMENTS):
        places = np.arange(begin, min(begin + CHUNK_ELEMENTS, total), dtype=np.int64)
        if mask is not None:
            flat = mask.array.reshape(-1)
            places = places[flat[places // trailing] != 0]
        if places.size:
            tally.take(places)
    return tally.figures(total, mask_name)


class _Tally:
    """Adds the figures of the pieces up."""

    def __init__(self, baseline: WholeTensor, candidate: WholeTensor) -> None:
        self._sides = (baseline, candidate)
        self._shape = baseline.shape
        self._same_dtype = baseline.dtype == candidate.dtype
        self._whole_numbers = not _has_floats(baseline.dtype)
        self._ulps = UlpHistogram()
        self._compared = self._other_bits = self._mismatches = 0
        self._non_finite = [0, 0]
        self._apart = self._nan_both = self._from_zero = 0
        self._first = self._first_apart = self._largest_at = -1
        self._max_absolute = self._max_relative = -1.0
        self._products = np.zeros(3)

    def take(self, places: npt.NDArray[np.int64]) -> None:
        """Compare the elements at these places of the flat tensors."""
        raw = [_rows(side, places) for side in self._sides]
        left, right = (_numbers(data, side.dtype) for data, side in zip(raw, self._sides, strict=True))
        bits = (raw[0] != raw[1]).any(axis=1) if self._same_dtype else None
        nan_both = np.isnan(left) & np.isnan(right)
        mismatch = bits if self._whole_numbers and bits is not None else (left != right) & ~nan_both
        finite = np.isfinite(left) & np.isfinite(right)
        self._count(places, mismatch, finite=finite, nan_both=nan_both)
        self._other_bits += 0 if bits is None else int(bits.sum())
        for side, values in enumerate((left, right)):
            self._non_finite[side] += int((~np.isfinite(values)).sum())
        if finite.any():
            self._sizes(places[finite], left[finite], right[finite], tuple(data[finite] for data in raw))
            if bits is not None:
                self._add_ulps(raw, finite & bits)

    def figures(self, total: int, mask_name: str) -> ElementFigures:
        """The sum of it all."""
        known = self._max_absolute >= 0
        return ElementFigures(
            num_elements=total,
            num_masked=total - self._compared,
            num_other_bits=self._other_bits if self._same_dtype else None,
            num_mismatches=self._mismatches,
            num_non_finite=(self._non_finite[0], self._non_finite[1]),
            num_non_finite_apart=self._apart,
            num_nan_both=self._nan_both,
            first=self._index(self._first),
            first_values=self._values(self._first),
            first_non_finite=self._index(self._first_apart),
            max_absolute=_bounded(self._max_absolute) if known else None,
            max_absolute_at=self._index(self._largest_at),
            max_relative=_bounded(self._max_relative) if self._max_relative >= 0 else None,
            num_from_zero=self._from_zero,
            max_ulp=self._ulps.largest if known and self._same_dtype and self._has_ulps() else None,
            ulps=self._ulps.buckets,
            cosine=self._cosine(),
            mask=mask_name,
        )

    def _count(self, places: npt.NDArray[np.int64], mismatch: Flags, *, finite: Flags, nan_both: Flags) -> None:
        apart = mismatch & ~finite
        self._compared += places.size
        self._mismatches += int(mismatch.sum())
        self._apart += int(apart.sum())
        self._nan_both += int(nan_both.sum())
        if self._first < 0 and mismatch.any():
            self._first = int(places[int(mismatch.argmax())])
        if self._first_apart < 0 and apart.any():
            self._first_apart = int(places[int(apart.argmax())])

    def _sizes(
        self, places: npt.NDArray[np.int64], left: npt.NDArray[Any], right: npt.NDArray[Any], raw: tuple[Bytes, ...]
    ) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            apart = self._distances(left, right, raw)
            magnitude = np.abs(left)
            relative = apart[magnitude != 0] / magnitude[magnitude != 0]
            self._products += [
                float(np.sum(np.real(left * np.conj(right)))),
                float(np.sum(magnitude * magnitude)),
                float(np.sum(np.abs(right) ** 2)),
            ]
        largest = int(apart.argmax())
        if float(apart[largest]) > self._max_absolute:
            self._max_absolute, self._largest_at = float(apart[largest]), int(places[largest])
        self._max_relative = max(self._max_relative, float(relative.max(initial=-1.0)))
        self._from_zero += int(((magnitude == 0) & (apart != 0)).sum())

    def _distances(
        self, left: npt.NDArray[Any], right: npt.NDArray[Any], raw: tuple[Bytes, ...]
    ) -> npt.NDArray[np.float64]:
        """Absolute differences; of whole numbers of 64 bits before they are rounded to float64."""
        dtype = self._sides[0].dtype
        if not dtype.endswith("int64"):
            distances: npt.NDArray[np.float64] = np.abs(right - left)
            return distances
        ours, theirs = (np.ascontiguousarray(data).view(dtype).reshape(-1) for data in raw)
        above = ours > theirs
        ours, theirs = ours.view(np.uint64), theirs.view(np.uint64)  # differences are right modulo 2^64
        apart: npt.NDArray[np.uint64] = np.where(above, ours - theirs, theirs - ours)
        return apart.astype(np.float64)

    def _has_ulps(self) -> bool:
        known = dtype_of(self._sides[0].dtype)
        return known.component in _FLOATS and known.components == 1

    def _add_ulps(self, raw: list[Bytes], where: Flags) -> None:
        if self._has_ulps() and where.any():
            codes = [ordered_codes(np.ascontiguousarray(data[where]).reshape(-1), self._sides[0].dtype) for data in raw]
            if codes[0] is not None and codes[1] is not None:
                self._ulps.add(codes[0], codes[1])

    def _cosine(self) -> float | None:
        dot, left, right = (float(value) for value in self._products)
        norm = (left**0.5) * (right**0.5)
        return dot / norm if 0 < norm < sys.float_info.max and np.isfinite(dot) else None

    def _index(self, place: int) -> Index:
        return () if place < 0 else tuple(int(part) for part in np.unravel_index(place, self._shape))

    def _values(self, place: int) -> tuple[str, str]:
        if place < 0:
            return ("", "")
        where = np.array([place], dtype=np.int64)
        told = [_numbers(_rows(side, where), side.dtype)[0] for side in self._sides]
        return (f"{told[0]:.9g}", f"{told[1]:.9g}")


def _rows(tensor: WholeTensor, places: npt.NDArray[np.int64]) -> Bytes:
    """The bytes of elements, one row each; copied, since they may lie in a mapped file."""
    itemsize = dtype_of(tensor.dtype).itemsize
    first, last = int(places[0]), int(places[-1])
    rows = tensor.data[first * itemsize : (last + 1) * itemsize].reshape(-1, itemsize)
    return rows[places - first]


def _numbers(rows: Bytes, dtype: str) -> npt.NDArray[Any]:
    """Elements as float64, complex ones as complex128."""
    values = numbers_of(rows.reshape(-1), dtype)
    assert values is not None  # for the type checker: `not_comparable` comes first
    return values.view(np.complex128) if dtype_of(dtype).components == 2 else values


def _has_floats(dtype: str) -> bool:
    known = dtype_of(dtype)
    return known.component in _FLOATS or dtype.startswith("float8")


def _bounded(value: float) -> float:
    """A distance beyond float64 as the largest float64: JSON has no infinity."""
    return min(value, sys.float_info.max)
