"""Aligned rows compared: which agree, which are not comparable, how far the others are apart (CP-7, CP-27): pure."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from paritrace.compare.samples import Sampled, constant_scale
from paritrace.compare.token_rows_align import Aligned, Column, Flags
from paritrace.compare.token_rows_load import Values, Whole


class RowStatus(IntEnum):
    """What is said of an aligned row."""

    AGREES = 0
    DIFFERS = 1
    AFTER_CHOICE = 2  # its sample has other tokens from here on
    SEMANTICS = 3  # declared to mean different things
    LENGTH = 4  # rows of another length
    DTYPE = 5  # bits of unlike dtypes are not compared; the error is


NOT_COMPARABLE = {RowStatus.SEMANTICS: "semantics", RowStatus.LENGTH: "length of a row", RowStatus.DTYPE: "dtype"}


@dataclass(frozen=True, slots=True)
class Judged:
    """One entry for each aligned row. `errors` and `norms` are NaN where no number can be told.

    `errors`: L2 of the difference over the samples, relative to the baseline's. `norms`: the candidate's over the
    baseline's. `non_finite`: finite on one side alone.
    """

    status: Whole
    errors: Values
    norms: Values
    non_finite: Flags

    def where(self, status: RowStatus) -> Flags:
        return np.asarray(self.status == status)


def judge(ours: Column, theirs: Column, pairs: Aligned, *, followers: Flags) -> Judged:
    """Judge each aligned row. `followers`: rows of samples whose tokens have parted by then."""
    status = np.where(ours.bits[pairs.ours] == theirs.bits[pairs.theirs], RowStatus.AGREES, RowStatus.DIFFERS)
    kinds = _kinds(ours, theirs, pairs)
    status = np.where(kinds > 0, kinds, status)
    status = np.where(followers & (status != RowStatus.AGREES), RowStatus.AFTER_CHOICE, status)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        norms = theirs.norms[pairs.theirs] / ours.norms[pairs.ours]
    errors, non_finite = _errors(ours, theirs, pairs)
    errors = np.where(_whole_numbers(ours)[ours.part[pairs.ours]], np.nan, errors)
    non_finite |= np.isfinite(ours.norms[pairs.ours]) != np.isfinite(theirs.norms[pairs.theirs])
    measured = np.isin(status, (RowStatus.DIFFERS, RowStatus.DTYPE))
    agrees = status == RowStatus.AGREES
    return Judged(
        status.astype(np.int64),
        np.where(agrees, 0.0, np.where(measured, errors, np.nan)),
        np.where(measured, norms, np.nan),
        non_finite & measured,
    )


def _kinds(ours: Column, theirs: Column, pairs: Aligned) -> Whole:
    """What decides before any bit: semantics, then the length of a row, then the dtype; 0 where all are alike."""
    if not pairs.ours.size:
        return np.zeros(0, dtype=np.int64)
    (known, left), (others, right) = _variants(ours), _variants(theirs)
    table = np.array([[_kind(one, other) for other in others] for one in known], dtype=np.int64)
    return table[left[ours.part[pairs.ours]], right[theirs.part[pairs.theirs]]]


def _variants(side: Column) -> tuple[list[tuple[str, int, str | None]], Whole]:
    """The different variants of a column, and which of them each part is."""
    numbers: dict[tuple[str, int, str | None], int] = {}
    of_parts = [numbers.setdefault(part.variant, len(numbers)) for part in side.parts]
    return list(numbers), np.array(of_parts, dtype=np.int64)


def _kind(ours: tuple[str, int, str | None], theirs: tuple[str, int, str | None]) -> int:
    if ours[2] != theirs[2]:
        return RowStatus.SEMANTICS
    if ours[1] != theirs[1]:
        return RowStatus.LENGTH
    return RowStatus.DTYPE if ours[0] != theirs[0] else 0


def _errors(ours: Column, theirs: Column, pairs: Aligned) -> tuple[Values, Flags]:
    left, right = ours.values[pairs.ours], theirs.values[pairs.theirs]
    if left.shape != right.shape or not left.shape[1]:
        unknown = np.full(pairs.ours.size, np.nan)
        return unknown, np.zeros(pairs.ours.size, dtype=np.bool_)
    held: Flags = np.logical_not(np.isnan(left) & np.isnan(right))
    finite = (np.isfinite(left) | ~held).all(axis=1), (np.isfinite(right) | ~held).all(axis=1)
    both: Flags = np.logical_and(finite[0], finite[1])
    counted = held & both[:, None]
    left, right = np.where(counted, left, 0.0), np.where(counted, right, 0.0)
    scale = np.maximum(np.abs(left).max(axis=1), np.abs(right).max(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = left / scale[:, None], right / scale[:, None]
        errors = np.sqrt(((right - left) ** 2).sum(axis=1)) / np.sqrt((left**2).sum(axis=1))
    return np.where(both & np.isfinite(errors), errors, np.nan), finite[0] != finite[1]


def _whole_numbers(side: Column) -> Flags:
    """The parts that hold whole numbers: ids and positions differ or agree, and have no relative error."""
    return np.array([part.dtype.startswith(("int", "uint", "bool")) for part in side.parts], dtype=np.bool_)


def scale_of(ours: Column, theirs: Column, pairs: Aligned, differing: Flags) -> float | None:
    """The one factor between all samples of the rows that differ, and of more than one of them; else None."""
    left, right = ours.values[pairs.ours[differing]], theirs.values[pairs.theirs[differing]]
    if left.shape != right.shape or len(left) < 2:
        return None
    known = ~(np.isnan(left) | np.isnan(right))
    return constant_scale(Sampled(left[known], right[known], None))
