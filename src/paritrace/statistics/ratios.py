"""Intervals of a ratio of two means, by Fieller's theorem (1954) with SciPy's quantiles (IN-17)."""

from math import sqrt

from msgspec import Struct

from paritrace.statistics.records import Interval


class Mean(Struct, frozen=True):
    """A mean, and the square of its standard error."""

    value: float
    variance: float


def fieller_interval(above: Mean, below: Mean, /, *, covariance: float, df: int, level: float) -> Interval | None:
    """Returns all ratios r for which a t test does not tell above - r * below from 0; None where they have no bounds.

    That is so where `below` itself is not told from 0. `covariance` is that of the two means, 0 for independent ones.
    """
    from scipy import stats

    t = float(stats.t.ppf((1 + level) / 2, df))
    square = below.value**2 - t**2 * below.variance
    if square <= 0:
        return None
    middle = above.value * below.value - t**2 * covariance
    rest = above.value**2 - t**2 * above.variance
    reach = sqrt(max(0.0, middle**2 - square * rest))  # below 0 by rounding only
    low, high = (middle - reach) / square, (middle + reach) / square
    return Interval(low, high, level, f"Fieller interval, {df} degrees of freedom")
