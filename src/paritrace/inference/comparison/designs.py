"""What two arms of runs support on one metric: paired blocks, or independent runs (IN-17). Runs are the unit."""

from collections.abc import Sequence
from math import exp, fsum, log, sqrt

from msgspec import Struct

from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.vocabulary import CompareGap, Design, Scale
from paritrace.statistics.records import Interval

FEWEST_PAIRS = 3
FEWEST_RUNS = 2
NOTHING = 1e-24  # a variance of no more than rounding


class Effect(Struct, frozen=True, tag_field="kind", tag="effect"):
    """Candidate against baseline: a ratio, or a difference, with its interval."""

    scale: Scale
    design: Design
    value: float
    interval: Interval | Absent
    num_baseline: int
    num_candidate: int


Found = Effect | Absent


def effect(
    baseline: Sequence[float], candidate: Sequence[float], *, scale: Scale, design: Design, level: float
) -> Found:
    """Returns the effect of one metric.

    Paired blocks: Student's t on the differences within blocks, n - 1 degrees of freedom; values stand in the order of
    their blocks. Independent: Welch's standard error with the smaller of the two degrees of freedom, min(nA, nB) - 1.
    Ratios are compared by their logarithms, so that a value of 0 has none.
    """
    fewest = FEWEST_PAIRS if design is Design.PAIRED_BLOCKS else FEWEST_RUNS
    if min(len(baseline), len(candidate)) == 0:
        return Absent(CompareGap.NO_REQUESTS)
    if scale is Scale.LOG_RATIO:
        if min(*baseline, *candidate) <= 0:
            return Absent(CompareGap.ZERO_IN_ARM)
        baseline, candidate = [log(one) for one in baseline], [log(one) for one in candidate]
    if design is Design.PAIRED_BLOCKS:
        within = [b - a for a, b in zip(baseline, candidate, strict=True)]
        value, variance, df = _mean(within), _variance(within) / len(within), len(within) - 1
    else:
        value = _mean(candidate) - _mean(baseline)
        variance = _variance(baseline) / len(baseline) + _variance(candidate) / len(candidate)
        df = min(len(baseline), len(candidate)) - 1
    enough = min(len(baseline), len(candidate)) >= fewest
    interval = _interval(value, variance, df=df, level=level) if enough else Absent(CompareGap.TOO_FEW_RUNS)
    if scale is Scale.LOG_RATIO:
        value = exp(value)
        if isinstance(interval, Interval):
            interval = Interval(exp(interval.low), exp(interval.high), interval.level, interval.method)
    return Effect(scale, design, value, interval, len(baseline), len(candidate))


def _interval(value: float, variance: float, *, df: int, level: float) -> Interval | Absent:
    from paritrace.statistics.intervals import t_interval

    if variance < NOTHING:
        return Absent(CompareGap.ZERO_VARIANCE, "runs that do not vary at all: no interval can be made of them")
    return t_interval(value, sqrt(variance), df=df, level=level)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = _mean(values)
    return fsum((one - mean) ** 2 for one in values) / (len(values) - 1)
