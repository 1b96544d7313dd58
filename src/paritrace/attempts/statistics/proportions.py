"""Intervals of single proportions, and McNemar's exact test, by SciPy (AT-13)."""

from typing import Literal

from paritrace.attempts.statistics.records import TestResult
from paritrace.statistics.records import Interval


def wilson(passes: int, num: int, *, level: float) -> Interval:
    """Returns Wilson's score interval of a proportion, without continuity correction; `num` is at least 1."""
    return _interval(passes, num, level=level, method="wilson", name="Wilson score interval")


def clopper_pearson(passes: int, num: int, *, level: float) -> Interval:
    """Returns the exact interval of a proportion; `num` is at least 1."""
    return _interval(passes, num, level=level, method="exact", name=f"Clopper-Pearson exact interval, n = {num}")


def mcnemar(first_only: int, second_only: int) -> TestResult:
    """Returns McNemar's exact test of pairs that one side alone passed: a binomial test of the discordant ones.

    Without a discordant pair nothing speaks against equality: p is 1.
    """
    from scipy import stats

    discordant = first_only + second_only
    p_value = float(stats.binomtest(first_only, discordant).pvalue) if discordant else 1.0
    facts: dict[str, float] = {"baseline_only": first_only, "candidate_only": second_only}
    return TestResult("McNemar exact test", p_value, discordant, facts)


def _interval(passes: int, num: int, *, level: float, method: Literal["wilson", "exact"], name: str) -> Interval:
    from scipy import stats

    found = stats.binomtest(passes, num).proportion_ci(confidence_level=level, method=method)
    return Interval(float(found.low), float(found.high), level, name)
