"""An interval that holds at every look, for results that were looked at more often than planned (AT-14)."""

from collections.abc import Sequence
from math import fsum, log, sqrt

from paritrace.attempts.statistics.records import Absent, NotEstimable
from paritrace.statistics.records import Interval

TUNED_FOR = 100  # the number of tasks at which the interval is narrowest; any choice is valid


def anytime_interval(values: Sequence[float], *, low: float, high: float, level: float) -> Interval | Absent:
    """Returns a confidence sequence's interval of the mean of values that lie in [low, high].

    The two-sided normal mixture bound for sub-Gaussian observations (Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon
    2021, eq. 14), with the sub-Gaussian scale (high - low) / 2 that Hoeffding's lemma gives. It holds at all sample
    sizes at once, so stopping and extending at will are covered; it is wider than a t interval.
    """
    num = len(values)
    if not num:
        return Absent(NotEstimable.NO_DATA)
    scale = (high - low) / 2
    alpha = 1 - level
    rho = _rho(alpha)
    variance = num * scale * scale
    reach = sqrt((variance + rho) * log((variance + rho) / (rho * alpha * alpha))) / num
    value = fsum(values) / num
    return Interval(max(low, value - reach), min(high, value + reach), level, "anytime-valid normal mixture interval")


def _rho(alpha: float) -> float:
    """The mixture's precision that makes the interval narrow near TUNED_FOR observations of scale one."""
    return TUNED_FOR / (-2 * log(alpha) + log(-2 * log(alpha)) + 1)
