"""Intervals of Student's t, by SciPy (AT-13, IN-17)."""

from paritrace.statistics.records import Interval


def t_interval(value: float, error: float, *, df: int, level: float) -> Interval:
    """Returns value +- t(df) * error; `error` is a standard error above 0."""
    from scipy import stats

    reach = float(stats.t.ppf((1 + level) / 2, df)) * error
    return Interval(value - reach, value + reach, level, f"t interval, {df} degrees of freedom")


def t_p_value(value: float, error: float, *, df: int) -> float:
    """Returns the two-sided p value of a t statistic."""
    from scipy import stats

    return float(2 * stats.t.sf(abs(value / error), df))
