"""Rates with their exact intervals (Clopper-Pearson), from scipy (CP-18)."""

from typing import NamedTuple

from scipy.stats import binomtest

CONFIDENCE = 0.95


class Rate(NamedTuple):
    """`found` of `total`, with the interval of 95 % in which the true rate lies; all rates where there is no trial."""

    found: int
    total: int
    low: float
    high: float


def rate(found: int, *, total: int) -> Rate:
    """The exact interval: 0 of 1,000 is at most 0.37 %, two-sided."""
    if not total:
        return Rate(0, 0, 0.0, 1.0)
    interval = binomtest(found, total).proportion_ci(confidence_level=CONFIDENCE, method="exact")
    return Rate(found, total, float(interval.low), float(interval.high))
