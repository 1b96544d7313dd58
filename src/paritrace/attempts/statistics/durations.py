"""Durations until a pass, where timeouts are censored and failures compete (AT-13)."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct

from paritrace.attempts.statistics.records import Absent, NotEstimable


class Ending(StrEnum):
    """How an attempt's time ended."""

    PASS = "pass"  # noqa: S105  a verdict
    FAIL = "fail"  # it ended otherwise: a competing event, after which no pass can come
    CENSORED = "censored"  # a timeout cut it off


class Incidence(Struct, frozen=True, tag_field="kind", tag="incidence"):
    """The cumulative incidence of a pass by time t (Aalen-Johansen), at the times where it rises."""

    seconds: tuple[float, ...]
    incidence: tuple[float, ...]
    num_passes: int
    num_fails: int
    num_censored: int


def incidence_of_pass(durations: Sequence[tuple[float, Ending]]) -> Incidence | Absent:
    """Returns the cumulative incidence of a pass: the sum of S(t-) * passes(t) / at_risk(t).

    S is the probability to be still running, by SciPy's Kaplan-Meier estimate over passes and fails.
    """
    if not durations:
        return Absent(NotEstimable.NOT_RECORDED)
    times = np.array([seconds for seconds, _ in durations], dtype=float)
    endings = np.array([str(ending) for _, ending in durations])
    at, passes = np.unique(times[endings == Ending.PASS], return_counts=True)
    counts = {one: int(np.count_nonzero(endings == one)) for one in Ending}
    rises = np.cumsum(_running(at, times, endings) * passes / _at_risk(at, times)) if len(at) else at
    return Incidence(
        tuple(float(one) for one in at),
        tuple(float(one) for one in rises),
        counts[Ending.PASS],
        counts[Ending.FAIL],
        counts[Ending.CENSORED],
    )


def _running(at: np.ndarray, times: np.ndarray, endings: np.ndarray) -> np.ndarray:
    """The probability to be still running just before each of these times."""
    from scipy import stats

    ended = endings != Ending.CENSORED
    data = stats.CensoredData(uncensored=times[ended], right=times[~ended])
    return np.asarray(stats.ecdf(data).sf.evaluate(np.nextafter(at, -np.inf)))


def _at_risk(at: np.ndarray, times: np.ndarray) -> np.ndarray:
    return len(times) - np.searchsorted(np.sort(times), at, side="left")
