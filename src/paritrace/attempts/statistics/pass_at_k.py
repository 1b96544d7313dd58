"""Unbiased pass@k and pass^k of independent attempts, with intervals over tasks (AT-13)."""

from collections.abc import Sequence
from functools import cache
from math import fsum

from msgspec import Struct

from paritrace.attempts.statistics.means import interval_over_tasks
from paritrace.attempts.statistics.records import Absent, NotEstimable, TaskOutcomes
from paritrace.statistics.records import Interval


class PassAtK(Struct, frozen=True):
    """pass@k (one of k passes) and pass^k (all of k pass), over the tasks that have at least k evaluated attempts.

    The intervals are of the population of tasks: t intervals over eligible tasks, each task one value.
    """

    k: int
    pass_at_k: float
    pass_hat_k: float
    num_eligible_tasks: int
    num_tasks: int
    at_k_interval: Interval | Absent
    hat_k_interval: Interval | Absent


def pass_at_k(tasks: Sequence[TaskOutcomes], k: int, *, level: float) -> PassAtK | Absent:
    """Returns both, as means over eligible tasks: 1 - C(n-c, k)/C(n, k) (Chen et al. 2021) and C(c, k)/C(n, k).

    k is never lowered because of a task with fewer attempts, and no task is dropped unmentioned.
    """
    if any(value not in (0.0, 1.0) for task in tasks for value in task.values):
        return Absent(NotEstimable.NOT_BINARY)
    counts = [(len(task.values), round(fsum(task.values))) for task in tasks if len(task.values) >= k]
    if not counts:
        return Absent(NotEstimable.TOO_FEW_ATTEMPTS, f"no task has {k} evaluated attempts")
    one = [_one_of(n, c, k) for n, c in counts]
    every = [_all_of(n, c, k) for n, c in counts]
    return PassAtK(
        k,
        fsum(one) / len(one),
        fsum(every) / len(every),
        len(counts),
        len(tasks),
        interval_over_tasks(one, level=level),
        interval_over_tasks(every, level=level),
    )


@cache
def _one_of(n: int, c: int, k: int) -> float:
    from scipy import stats

    return min(1.0, float(stats.hypergeom.sf(0, n, c, k)))


@cache
def _all_of(n: int, c: int, k: int) -> float:
    from scipy import stats

    return min(1.0, float(stats.hypergeom.pmf(k, n, c, k)))
