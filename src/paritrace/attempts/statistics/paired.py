"""Paired differences over matched tasks: t interval, sign flips, the smallest difference that could be seen (AT-13)."""

from collections.abc import Sequence
from math import fsum, sqrt
from typing import cast

import numpy as np
import numpy.typing as npt

from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable, TestResult
from paritrace.statistics.intervals import t_interval

EXACT_PAIRS = 20  # all 2^20 sign flips are computed up to here, beyond it they are drawn
NUM_FLIPS = 10_000
FEWEST_FLIPS = 1_000
MOST_SIGNS = 10_000_000  # flips times pairs: bounds the time where there are thousands of pairs
SEED = 20_261_130
BATCH = 4096  # flips at a time: bounds the memory
POWER = 0.8
ESTIMAND = "mean over matched tasks of baseline minus candidate"


def paired_difference(differences: Sequence[float], *, level: float) -> Estimate | Absent:
    """Returns the mean of paired differences with its t interval of n - 1 degrees of freedom."""
    num = len(differences)
    if not num:
        return Absent(NotEstimable.NO_DATA)
    value = fsum(differences) / num
    variance = fsum((one - value) ** 2 for one in differences) / (num - 1) if num > 1 else 0.0
    if num < 2 or variance < 1e-24:
        why: Absent = Absent(NotEstimable.TOO_FEW_TASKS if num < 2 else NotEstimable.ZERO_VARIANCE)
        return Estimate(ESTIMAND, value, why, why, num, 0)
    error = sqrt(variance / num)
    return Estimate(ESTIMAND, value, error, t_interval(value, error, df=num - 1, level=level), num, 0)


def sign_flip(differences: Sequence[float]) -> TestResult:
    """Returns the two-sided sign-flip permutation test of a mean of paired differences (Fisher 1935).

    Exact up to EXACT_PAIRS pairs that differ; beyond that flips are drawn with a fixed seed: NUM_FLIPS, or fewer where
    there are thousands of pairs. Pairs without a difference change nothing and are left out of the flips. One pair
    flipped or not is equally far from zero.
    """
    from scipy import stats

    moved = np.sort(np.array([one for one in differences if one], dtype=float))
    if len(moved) < 2:
        facts = {"exact": 1.0, "num_flips": float(2 ** len(moved))}
        return TestResult("sign-flip permutation test", 1.0, len(differences), facts)
    exact = len(moved) <= EXACT_PAIRS
    drawn = min(NUM_FLIPS, max(FEWEST_FLIPS, MOST_SIGNS // len(moved)))
    done = stats.permutation_test(
        (moved,),
        _means,
        permutation_type="samples",
        vectorized=True,
        n_resamples=2**EXACT_PAIRS if exact else drawn,
        batch=BATCH,
        rng=np.random.default_rng(SEED),
    )
    facts = {"exact": float(exact), "num_flips": float(2 ** len(moved) if exact else drawn)}
    return TestResult(
        "sign-flip permutation test", float(done.pvalue), len(differences), facts, seed=None if exact else SEED
    )


def _means(values: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
    return np.asarray(values.mean(axis=axis))


def minimum_detectable(differences: Sequence[float], *, level: float) -> float | Absent:
    """Returns the mean difference that a two-sided paired t test of so many tasks sees with a power of POWER.

    By the noncentral t distribution, with the standard deviation that these differences have.
    """
    num = len(differences)
    if num < 2:
        return Absent(NotEstimable.TOO_FEW_TASKS)
    deviation = float(np.std(np.array(differences), ddof=1))
    if deviation < 1e-12:
        return Absent(NotEstimable.ZERO_VARIANCE)
    return deviation * detectable_effect(num, level=level, power=POWER)


def detectable_effect(num: int, *, level: float, power: float) -> float:
    """Returns the effect, in standard deviations, that a two-sided one-sample t test of `num` sees with `power`."""
    from scipy import optimize, stats

    reach = float(stats.t.ppf((1 + level) / 2, num - 1))

    def short(effect: float) -> float:
        shift = effect * sqrt(num)
        other_side = stats.nct.cdf(-reach, num - 1, shift)  # SciPy gives NaN where it is too small for it
        return float(stats.nct.sf(reach, num - 1, shift) + np.nan_to_num(other_side)) - power

    most = reach / sqrt(num)
    while short(most) < 0:
        most *= 1.5
    return float(cast("float", optimize.brentq(short, 1e-9, most)))
