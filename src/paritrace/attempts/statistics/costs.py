"""Costs over tasks: per attempt, per pass and as a difference, each with its interval (AT-8, AT-13).

Only for costs that are all known: what is missing is hardly ever missing at random, for failures cost most.
"""

from collections.abc import Mapping, Sequence
from math import fsum, sqrt

from paritrace.attempts.statistics.means import clustered_mean
from paritrace.attempts.statistics.paired import paired_difference
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable, TaskOutcomes
from paritrace.statistics.intervals import t_interval
from paritrace.statistics.records import Interval

Task = tuple[str, str]
PER_ATTEMPT = "mean cost of an attempt"


def cost_per_attempt(by_task: Mapping[Task, Sequence[float]], *, level: float) -> Estimate | Absent:
    """Returns the mean over attempts, its error clustered by task, with a t interval of C - 1 degrees of freedom."""
    tasks = [TaskOutcomes(task, tuple(amounts)) for task, amounts in sorted(by_task.items())]
    return clustered_mean(tasks, level=level, estimand=PER_ATTEMPT)


def per_pass_interval(
    by_task: Mapping[Task, Sequence[float]], passes: Mapping[Task, float], *, level: float
) -> Interval | Absent:
    """Returns the interval of cost over passes, a ratio of two sums over tasks.

    By linearisation (Cochran 1977, section 6.3; a task is a cluster): the error of R = sum c / sum p is
    sqrt(C/(C-1) * sum (c - R p)^2) / sum p, with a t interval of C - 1 degrees of freedom. The low end is not below 0.
    """
    spent = {task: fsum(amounts) for task, amounts in sorted(by_task.items())}
    total = fsum(passes.values())
    if not total:
        return Absent(NotEstimable.NO_DATA, "nothing passed")
    if len(spent) < 2:
        return Absent(NotEstimable.TOO_FEW_TASKS)
    ratio = fsum(spent.values()) / total
    spread = fsum((cost - ratio * passes.get(task, 0.0)) ** 2 for task, cost in spent.items())
    if spread <= 1e-24 * ratio * ratio:
        return Absent(NotEstimable.ZERO_VARIANCE)
    found = t_interval(ratio, sqrt(len(spent) / (len(spent) - 1) * spread) / total, df=len(spent) - 1, level=level)
    return Interval(max(0.0, found.low), found.high, found.level, f"linearised ratio, {found.method}")


def cost_difference(
    baseline: Mapping[Task, Sequence[float]],
    candidate: Mapping[Task, Sequence[float]],
    matched: Sequence[Task],
    *,
    level: float,
) -> Estimate | Absent:
    """Returns the mean over matched tasks of the difference of mean costs per attempt, with its paired t interval."""
    both = [task for task in matched if baseline.get(task) and candidate.get(task)]
    differences = [
        fsum(baseline[task]) / len(baseline[task]) - fsum(candidate[task]) / len(candidate[task]) for task in both
    ]
    return paired_difference(differences, level=level)
