"""How far one recorded slot is from the baseline's: sampled error, norm ratio and bias (CP-10a, CA-28)."""

import math
from typing import NamedTuple

import numpy as np

from paritrace.compare.samples import MIN_BIAS_SAMPLES, sampled
from paritrace.compare.ulps import FORMATS
from paritrace.evidence.calls import Detail

SMALL = 0.1  # of the root mean square: a sample below it is weighed as if it had this size
BIAS_FLOOR = 2.0**-26  # a spread of relative errors below any float's rounding is taken for this one


class Strengths(NamedTuple):
    """Three figures of one slot against the baseline's; 0 where they agree.

    `error`: L2 of the difference over the samples, relative to the baseline's samples. `norm`: absolute logarithm of
    the ratio of L2 norms over all elements. `bias`: by how many standard errors the mean of the samples' signed
    relative errors is more than one unit in the last place, by which one scalar that rounds otherwise shifts all that
    it scales.
    """

    error: float
    norm: float
    bias: float


NONE = Strengths(0.0, 0.0, 0.0)
NOT_FINITE = Strengths(math.inf, 0.0, 0.0)  # values that are not finite, where the baseline has none


def strengths(baseline: tuple[Detail, str], other: tuple[Detail, str]) -> Strengths | None:
    """The strengths of a slot, given with its dtype on each side; None where no number can be stated.

    Values that are not finite, in a slot that has none on the baseline, are infinitely far from it. None: other places
    were sampled, the baseline's values are not finite, or its samples are all zero.
    """
    (ours, our_dtype), (theirs, their_dtype) = baseline, other
    if our_dtype == their_dtype and ours.bits == theirs.bits:
        return NONE
    if _not_finite(ours) == 0 and _not_finite(theirs):
        return NOT_FINITE
    norm = _norm(ours, theirs)
    found = of_samples((ours.samples, our_dtype), (theirs.samples, their_dtype))
    return None if norm is None or found is None else found._replace(norm=norm)


def _not_finite(of: Detail) -> int | None:
    """How many values are not finite; None where they were not counted."""
    counts = of.counts
    return None if counts is None else counts.nan + counts.positive_infinity + counts.negative_infinity


def of_samples(baseline: tuple[str, str], other: tuple[str, str], *, units: int = 1) -> Strengths | None:
    """The error and the bias of samples, each side's given with their dtype; no norm is known of them.

    `units` in the last place are no bias: two of a square, whose factors one scalar shifts by one each.
    """
    if baseline == other:
        return NONE
    pair = sampled(baseline, other)
    if pair is None or not (np.isfinite(pair.baseline).all() and np.isfinite(pair.candidate).all()):
        return None
    scale = float(np.abs(pair.baseline).max(initial=0.0))
    if scale == 0.0:
        return None
    left, moved = pair.baseline / scale, (pair.candidate - pair.baseline) / scale
    rms = float(np.sqrt(np.mean(left * left)))
    error = float(np.sqrt(np.mean(moved * moved))) / rms
    signed = moved * np.sign(left) / np.maximum(np.abs(left), SMALL * rms)
    unit = max(FORMATS[dtype].epsilon if dtype in FORMATS else 0.0 for _, dtype in (baseline, other))
    return Strengths(error, 0.0, _bias(signed[left != 0], unit=units * unit))


def _norm(ours: Detail, theirs: Detail) -> float | None:
    if ours.moments is None or theirs.moments is None:
        return None
    left, right = ours.moments.sum_squares, theirs.moments.sum_squares
    if left is None or right is None or not left > 0.0 or not right > 0.0:
        return None
    return 0.5 * abs(math.log(right) - math.log(left))


def _bias(signed: "np.typing.NDArray[np.float64]", *, unit: float) -> float:
    if signed.size < MIN_BIAS_SAMPLES:
        return 0.0
    spread = max(float(signed.std(ddof=1)), BIAS_FLOOR)
    return max(abs(float(signed.mean())) - unit, 0.0) / (spread / math.sqrt(signed.size))


def of_numbers(baseline: float, other: float) -> Strengths | None:
    """The strengths of one recorded number, such as a loss: a relative error, and nothing else."""
    if not math.isfinite(baseline) or not math.isfinite(other) or baseline == 0.0:
        return NONE if baseline == other else None
    return Strengths(abs(other - baseline) / abs(baseline), 0.0, 0.0)
