"""Comparing two tensors element by element, in pieces of bounded size, what is not finite first (CP-11)."""

import sys
from typing import Any, NamedTuple

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
Numbers = npt.NDArray[Any]


class _Piece(NamedTuple):
    """A stretch of the flat tensors; `kept`: its elements that are compared, None for all."""

    begin: int
    end: int
    kept: npt.NDArray[np.int64] | None

    def place(self, number: int) -> int:
        """The place in the whole of the piece's compared element of this number."""
        return self.begin + (number if self.kept is None else int(self.kept[number]))

    def within(self, which: Flags) -> "_Piece":
        """The piece with these of its compared elements alone."""
        chosen = np.flatnonzero(which).astype(np.int64)
        return _Piece(self.begin, self.end, chosen if self.kept is None else self.kept[chosen])


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
        end = min(begin + CHUNK_ELEMENTS, total)
        kept = None if mask is None else _kept(mask, begin, end, trailing=trailing)
        if kept is None or kept.size:
            tally.take(_Piece(begin, end, kept))
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

    def take(self, piece: _Piece) -> None:
        """Compare the elements of one piece of the flat tensors."""
        words = [_words(side, piece) for side in self._sides]
        left, right = (_numbers(data, side.dtype) for data, side in zip(words, self._sides, strict=True))
        bits = _unlike(words[0], words[1]) if self._same_dtype else None
        finite_sides = (np.isfinite(left), np.isfinite(right))
        finite = finite_sides[0] & finite_sides[1]
        nan_both = np.isnan(left) & np.isnan(right) if not finite.all() else np.zeros(0, np.bool_)
        mismatch = bits if self._whole_numbers and bits is not None else _other_values(left, right, nan_both)
        self._count(piece, mismatch, finite=finite, num_nan_both=int(nan_both.sum()))
        self._other_bits += 0 if bits is None else int(bits.sum())
        for side, ends in enumerate(finite_sides):
            self._non_finite[side] += int(ends.size - ends.sum())
        if finite.all():
            self._sizes(piece, left, right, words)
        elif finite.any():
            self._sizes(piece.within(finite), left[finite], right[finite], [data[finite] for data in words])
        if bits is not None:
            self._add_ulps(words, bits & finite)

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

    def _count(self, piece: _Piece, mismatch: Flags, *, finite: Flags, num_nan_both: int) -> None:
        apart = mismatch & ~finite
        self._compared += mismatch.size
        self._mismatches += int(mismatch.sum())
        self._apart += int(apart.sum())
        self._nan_both += num_nan_both
        if self._first < 0 and mismatch.any():
            self._first = piece.place(int(mismatch.argmax()))
        if self._first_apart < 0 and apart.any():
            self._first_apart = piece.place(int(apart.argmax()))

    def _sizes(self, piece: _Piece, left: Numbers, right: Numbers, words: list[Numbers]) -> None:
        """Distances and products of elements that are finite on both sides."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            apart = self._distances(left, right, words)
            magnitude = np.abs(left)
            relative = apart / magnitude
            self._products += [
                float(np.sum(np.real(left * np.conj(right)))),
                float(np.sum(magnitude * magnitude)),
                float(np.sum(np.abs(right) ** 2)),
            ]
        from_zero = magnitude == 0
        largest = int(apart.argmax())
        if float(apart[largest]) > self._max_absolute:
            self._max_absolute, self._largest_at = float(apart[largest]), piece.place(largest)
        self._max_relative = max(self._max_relative, float(np.max(relative, initial=-1.0, where=~from_zero)))
        self._from_zero += int((from_zero & (apart != 0)).sum())

    def _distances(self, left: Numbers, right: Numbers, words: list[Numbers]) -> npt.NDArray[np.float64]:
        """Absolute differences; of whole numbers of 64 bits before they are rounded to float64."""
        dtype = self._sides[0].dtype
        if not dtype.endswith("int64"):
            distances: npt.NDArray[np.float64] = np.abs(right - left)
            return distances
        ours, theirs = (data.view(dtype) for data in words)
        above = ours > theirs
        ours, theirs = ours.view(np.uint64), theirs.view(np.uint64)  # differences are right modulo 2^64
        apart: npt.NDArray[np.uint64] = np.where(above, ours - theirs, theirs - ours)
        return apart.astype(np.float64)

    def _has_ulps(self) -> bool:
        known = dtype_of(self._sides[0].dtype)
        return known.component in _FLOATS and known.components == 1

    def _add_ulps(self, words: list[Numbers], where: Flags) -> None:
        if self._has_ulps() and where.any():
            codes = [ordered_codes(data[where].view(np.uint8), self._sides[0].dtype) for data in words]
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
        told = [_numbers(_words(side, _Piece(place, place + 1, None)), side.dtype)[0] for side in self._sides]
        return (f"{told[0]:.9g}", f"{told[1]:.9g}")


def _kept(mask: WholeTensor, begin: int, end: int, *, trailing: int) -> npt.NDArray[np.int64]:
    """Which elements of a piece a mask keeps, counted from the piece's beginning."""
    flat = mask.array.reshape(-1)
    return np.flatnonzero(flat[np.arange(begin, end) // trailing]).astype(np.int64)


def _words(tensor: WholeTensor, piece: _Piece) -> Numbers:
    """The bits of a piece's elements; those of 16 bytes as two words each."""
    itemsize = dtype_of(tensor.dtype).itemsize
    data = tensor.data[piece.begin * itemsize : piece.end * itemsize]
    words = np.ascontiguousarray(data).view(f"<u{min(itemsize, 8)}").reshape(-1, 2 if itemsize == 16 else 1)
    kept = words if piece.kept is None else words[piece.kept]
    return kept if itemsize == 16 else kept.reshape(-1)


def _unlike(left: Numbers, right: Numbers) -> Flags:
    """Which elements have other bits."""
    unlike: Flags = left != right
    return unlike if unlike.ndim == 1 else np.logical_or(unlike[:, 0], unlike[:, 1])


def _other_values(left: Numbers, right: Numbers, nan_both: Flags) -> Flags:
    """Which elements have another value; a NaN has another one than any number, and is counted apart from NaN."""
    other: Flags = left != right
    return other & ~nan_both if nan_both.size else other


def _numbers(words: Numbers, dtype: str) -> Numbers:
    """Elements as float64, complex ones as complex128."""
    values = numbers_of(words.reshape(-1).view(np.uint8), dtype)
    assert values is not None  # for the type checker: `not_comparable` comes first
    return values.view(np.complex128) if dtype_of(dtype).components == 2 else values


def _has_floats(dtype: str) -> bool:
    known = dtype_of(dtype)
    return known.component in _FLOATS or dtype.startswith("float8")


def _bounded(value: float) -> float:
    """A distance beyond float64 as the largest float64: JSON has no infinity."""
    return min(value, sys.float_info.max)
