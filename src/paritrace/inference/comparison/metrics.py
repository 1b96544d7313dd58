"""Figures of one run: quantiles over its requests, in which a failure is worse than any latency: pure (IN-17)."""

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.vocabulary import CompareGap, Scale
from paritrace.inference.importers.client_terms import Timing

QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
MEAN = "mean"
NAMES: Mapping[Timing, str] = {
    Timing.TIME_TO_FIRST_OUTPUT: "time_to_first_output",
    Timing.LATENCY: "latency",
    Timing.MEAN_BETWEEN_TOKENS: "mean_between_tokens",
    Timing.MEAN_BETWEEN_CHUNKS: "mean_between_chunks",
}
SUCCESSFUL_FRACTION = "successful_fraction"
ATTAINED = "attained"  # attained.NAME: the fraction of requests that keep an objective
REQUESTS_PER_SECOND = "successful_requests_per_second"
OUTPUT_TOKENS_PER_SECOND = "output_tokens_per_second"
RATES = (REQUESTS_PER_SECOND, OUTPUT_TOKENS_PER_SECOND)
Numbers = npt.NDArray[np.float64]


class Span(Struct, frozen=True, tag_field="kind", tag="value"):
    """A figure of a run: one number where `low` and `high` are the same, else bounds. Times are in seconds."""

    low: float
    high: float


Figure = Span | Absent


def scale_of(metric: str, *, ratio: Scale = Scale.LOG_RATIO) -> Scale:
    """Returns on what scale a metric is compared: fractions by difference, everything else by `ratio`."""
    return Scale.DIFFERENCE if is_fraction(metric) else ratio


def is_fraction(metric: str) -> bool:
    """Whether it is a fraction of the requests."""
    return metric == SUCCESSFUL_FRACTION or metric.partition(".")[0] == ATTAINED


def is_timed(metric: str) -> bool:
    """Whether a client that cannot keep up has it wrong: latencies, and what is decided by them (IN-27)."""
    return metric.partition(".")[0] in {*NAMES.values(), ATTAINED}


def lower_is_better(metric: str) -> bool:
    """Whether less of it is better."""
    return not is_fraction(metric) and metric not in RATES


def penalised_quantile(values: Numbers, *, num_failed: int, num_unknown: int, fraction: float) -> Figure:
    """Returns a quantile over all requests in seconds, a failed one later than any (nearest rank).

    Args:
        values: sorted seconds of the successful ones.
        num_unknown: requests whose outcome or latency is not known: as if they were fastest, and as if they had failed.
    """
    total = len(values) + num_failed + num_unknown
    if not len(values):
        return Absent(CompareGap.NO_REQUESTS)
    rank = max(1, ceil(fraction * total))
    high = rank - 1
    if high >= len(values):
        return Absent(CompareGap.QUANTILE_IN_FAILURES, f"rank {rank} of {total}, {len(values)} with a latency")
    low = rank - 1 - num_unknown
    return Span(0.0 if low < 0 else float(values[low]), float(values[high]))


def mean_of(values: Numbers, *, num_without: int) -> Figure:
    """Returns the mean over the successful requests; where others have none it is no figure of the run."""
    if not len(values):
        return Absent(CompareGap.NO_REQUESTS)
    if num_without:
        return Absent(CompareGap.UNDEFINED_IN_ARM, f"{num_without} requests have no latency")
    mean = float(values.mean())
    return Span(mean, mean)


def latency_figures(name: str, values: Sequence[float], *, num_failed: int, num_unknown: int) -> dict[str, Figure]:
    """Returns the figures of one latency of a run, by metric."""
    in_order = np.sort(np.asarray(values, dtype=np.float64))
    figures: dict[str, Figure] = {
        f"{name}.{label}": penalised_quantile(
            in_order, num_failed=num_failed, num_unknown=num_unknown, fraction=fraction
        )
        for label, fraction in QUANTILES
    }
    figures[f"{name}.{MEAN}"] = mean_of(in_order, num_without=num_failed + num_unknown)
    return figures


def rate(count: int | None, interval_seconds: float | None) -> Figure:
    """Returns a rate over an interval that somebody stated; the first and last request do not bound one."""
    if count is None:
        return Absent(CompareGap.NOT_RECORDED)
    if interval_seconds is None or interval_seconds <= 0:
        return Absent(CompareGap.INTERVAL_UNKNOWN)
    return Span(count / interval_seconds, count / interval_seconds)
