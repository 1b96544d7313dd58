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
    """Candidate against baseline: a ratio, or a difference, with its interval.

    `p_value`: two-sided, of no difference, by the same t statistic.
    """

    scale: Scale
    design: Design
    value: float
    interval: Interval | Absent
    p_value: float | Absent
    num_baseline: int
    num_candidate: int


Found = Effect | Absent


def effect(
    baseline: Sequence[float], candidate: Sequence[float], *, scale: Scale, design: Design, level: float
) -> Found:
    """Returns the effect of one metric.

    Paired blocks: Student's t on the differences within blocks, n - 1 degrees of freedom; values stand in the order of
    their blocks. Independent: Welch's standard error with the smaller of the two degrees of freedom, min(nA, nB) - 1.
    Ratios are compared by their logarithms, so that a value of 0 has none; or by Fieller's interval of the arithmetic
    means, which has no bounds where the baseline's mean is not told from 0.
    """
    if min(len(baseline), len(candidate)) == 0:
        return Absent(CompareGap.NO_REQUESTS)
    if scale is Scale.LOG_RATIO:
        if min(*baseline, *candidate) <= 0:
            return Absent(CompareGap.ZERO_IN_ARM)
        baseline, candidate = [log(one) for one in baseline], [log(one) for one in candidate]
    means = _means(baseline, candidate, design)
    if scale is Scale.MEANS_RATIO and means.baseline <= 0:
        return Absent(CompareGap.ZERO_IN_ARM)
    fewest = FEWEST_PAIRS if design is Design.PAIRED_BLOCKS else FEWEST_RUNS
    enough = min(len(baseline), len(candidate)) >= fewest
    interval = _interval(means, scale, level=level) if enough else Absent(CompareGap.TOO_FEW_RUNS)
    return Effect(
        scale=scale,
        design=design,
        value=_value(means, scale),
        interval=interval,
        p_value=_p_value(means) if enough else Absent(CompareGap.TOO_FEW_RUNS),
        num_baseline=len(baseline),
        num_candidate=len(candidate),
    )


class _Means(Struct, frozen=True):
    """The arms' means, what is known of their errors, and of the error of their difference."""

    baseline: float
    candidate: float
    variance_of_baseline: float
    variance_of_candidate: float
    covariance: float
    variance: float
    df: int


def _means(baseline: Sequence[float], candidate: Sequence[float], design: Design) -> _Means:
    first, second = _mean(baseline), _mean(candidate)
    of_first, of_second = _variance(baseline) / len(baseline), _variance(candidate) / len(candidate)
    if design is Design.INDEPENDENT:
        df = min(len(baseline), len(candidate)) - 1
        return _Means(first, second, of_first, of_second, 0.0, of_first + of_second, df)
    within = [b - a for a, b in zip(baseline, candidate, strict=True)]
    of_difference = _variance(within) / len(within)
    covariance = (of_first + of_second - of_difference) / 2
    return _Means(first, second, of_first, of_second, covariance, of_difference, len(within) - 1)


def _value(means: _Means, scale: Scale) -> float:
    match scale:
        case Scale.DIFFERENCE:
            return means.candidate - means.baseline
        case Scale.LOG_RATIO:
            return exp(means.candidate - means.baseline)
        case Scale.MEANS_RATIO:
            return means.candidate / means.baseline


def _interval(means: _Means, scale: Scale, *, level: float) -> Interval | Absent:
    from paritrace.statistics.intervals import t_interval
    from paritrace.statistics.ratios import Mean, fieller_interval

    if means.variance < NOTHING:
        return Absent(CompareGap.ZERO_VARIANCE, "runs that do not vary at all: no interval can be made of them")
    if scale is Scale.MEANS_RATIO:
        above = Mean(means.candidate, means.variance_of_candidate)
        below = Mean(means.baseline, means.variance_of_baseline)
        found = fieller_interval(above, below, covariance=means.covariance, df=means.df, level=level)
        return Absent(CompareGap.UNBOUNDED) if found is None else found
    interval = t_interval(means.candidate - means.baseline, sqrt(means.variance), df=means.df, level=level)
    if scale is Scale.DIFFERENCE:
        return interval
    return Interval(exp(interval.low), exp(interval.high), interval.level, interval.method)


def _p_value(means: _Means) -> float | Absent:
    from paritrace.statistics.intervals import t_p_value

    if means.variance < NOTHING:
        return Absent(CompareGap.ZERO_VARIANCE, "runs that do not vary at all: no test can be made of them")
    return t_p_value(means.candidate - means.baseline, sqrt(means.variance), df=means.df)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = _mean(values)
    return fsum((one - mean) ** 2 for one in values) / (len(values) - 1)
