"""How far values lie from a float64 reference, in units in the last place of the dtype they were computed in (CP-26).

The unit of an element is the spacing of its dtype at the reference, of the smallest normal number at least. A correctly
rounded result is at most half a unit away.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Values = npt.NDArray[np.float64]
BOUNDS = (0.5, 1.0, 2.0, 4.0, 16.0, 256.0)  # upper bounds of the histogram's counts; a last count is of those above


class FloatFormat(Struct, frozen=True):
    """`digits` of the significand in bits, the hidden one included; `lowest` exponent of a normal number."""

    digits: int
    lowest: int

    @property
    def epsilon(self) -> float:
        """The spacing at 1."""
        return math.ldexp(1.0, 1 - self.digits)


FORMATS = {
    "float64": FloatFormat(53, -1022),
    "float32": FloatFormat(24, -126),
    "float16": FloatFormat(11, -14),
    "bfloat16": FloatFormat(8, -126),
    "float8_e4m3fn": FloatFormat(4, -6),
    "float8_e5m2": FloatFormat(3, -14),
    "float8_e4m3fnuz": FloatFormat(4, -7),
    "float8_e5m2fnuz": FloatFormat(3, -15),
    "complex128": FloatFormat(53, -1022),
    "complex64": FloatFormat(24, -126),
    "complex32": FloatFormat(11, -14),
}


class UlpErrors(Struct, frozen=True):
    """Errors of one tensor against its reference.

    `largest` and `median` in ULP over elements that are finite on both sides, None where there are none; `histogram`
    counts them by BOUNDS. `relative` is the norm of all errors over the reference's norm, None where that is zero.
    `non_finite_apart` counts elements where one is finite and the other is not, or another infinity.
    """

    num_elements: int
    largest: float | None
    median: float | None
    histogram: tuple[int, ...]
    relative: float | None
    non_finite_apart: int


def ulp_errors(values: Values, reference: Values, /, *, dtype: str) -> UlpErrors:
    """Returns the errors of `values`, of one shape with `reference`, both float64 holding them exactly.

    `dtype` is the torch name of the format that `values` were computed in, one of FORMATS.
    """
    values, reference = values.reshape(-1), reference.reshape(-1)
    both = np.isfinite(values) & np.isfinite(reference)
    same = (np.isnan(values) & np.isnan(reference)) | (values == reference)
    apart = int(np.count_nonzero(~both & ~same))
    errors = np.abs(values[both] - reference[both])
    units = errors / spacing(reference[both], FORMATS[dtype])
    return UlpErrors(
        num_elements=values.size,
        largest=float(units.max()) if units.size else None,
        median=float(np.median(units)) if units.size else None,
        histogram=_histogram(units),
        relative=relative_norm(errors, reference[both]),
        non_finite_apart=apart,
    )


def spacing(reference: Values, form: FloatFormat, /) -> Values:
    """Returns the distance between neighbouring numbers of a format at each of `reference`."""
    _, exponents = np.frexp(reference)
    at = np.where(reference == 0, form.lowest, np.maximum(exponents - 1, form.lowest))
    units: Values = np.ldexp(1.0, at - (form.digits - 1)).astype(np.float64)
    return units


def relative_norm(errors: Values, reference: Values, /) -> float | None:
    """Returns the L2 norm of `errors` over that of `reference`; None where the reference is all zero or empty."""
    scale = float(np.abs(reference).max(initial=0.0))
    if not scale:
        return None
    own: Any = np.linalg.norm(reference / scale)
    return float(np.linalg.norm(errors / scale) / own)


def apart(one: Values, other: Values, /, *beside: Values) -> float | None:
    """Returns the norm of the difference of two tensors over the largest norm of both and of those `beside` them.

    What is zero but for round-off is measured so against the round-off of a coarser dtype beside it. Infinite where one
    alone is finite; None where all are zero, or hold nothing that is finite.
    """
    one, other = one.reshape(-1), other.reshape(-1)
    both = np.isfinite(one) & np.isfinite(other)
    same = (np.isnan(one) & np.isnan(other)) | (one == other)
    if np.any(~both & ~same):
        return math.inf
    known = [one[both], other[both], *(values.reshape(-1)[np.isfinite(values.reshape(-1))] for values in beside)]
    scale = max((float(np.abs(values).max(initial=0.0)) for values in known), default=0.0)
    if not scale:
        return None
    norms = [float(np.linalg.norm(values / scale)) for values in known]
    return float(np.linalg.norm(known[0] / scale - known[1] / scale)) / max(norms)


def _histogram(units: Values) -> tuple[int, ...]:
    places = np.searchsorted(np.array(BOUNDS), units, side="left")
    return tuple(int(count) for count in np.bincount(places, minlength=len(BOUNDS) + 1))
