"""Unbiased pass@k and pass^k of independent attempts (AT-13)."""

from collections import Counter
from collections.abc import Sequence
from math import fsum

from msgspec import Struct
from scipy import stats

from paritrace.attempts.statistics.records import Absent, NotEstimable, TaskOutcomes


class PassAtK(Struct, frozen=True):
    """pass@k (one of k passes) and pass^k (all of k pass), over the tasks that have at least k evaluated attempts."""

    k: int
    pass_at_k: float
    pass_hat_k: float
    num_eligible_tasks: int
    num_tasks: int


def pass_at_k(tasks: Sequence[TaskOutcomes], k: int) -> PassAtK | Absent:
    """Returns both, as means over eligible tasks: 1 - C(n-c, k)/C(n, k) (Chen et al. 2021) and C(c, k)/C(n, k).

    k is never lowered because of a task with fewer attempts, and no task is dropped unmentioned.
    """
    if any(value not in (0.0, 1.0) for task in tasks for value in task.values):
        return Absent(NotEstimable.NOT_BINARY)
    counts = Counter((len(task.values), round(fsum(task.values))) for task in tasks if len(task.values) >= k)
    num = counts.total()
    if not num:
        return Absent(NotEstimable.TOO_FEW_ATTEMPTS, f"no task has {k} evaluated attempts")
    one = fsum(float(stats.hypergeom.sf(0, n, c, k)) * many for (n, c), many in counts.items()) / num
    every = fsum(float(stats.hypergeom.pmf(k, n, c, k)) * many for (n, c), many in counts.items()) / num
    return PassAtK(k, one, every, num, len(tasks))
