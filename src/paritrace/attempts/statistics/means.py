"""Means over tasks and over attempts, with errors clustered by task (AT-13)."""

from collections.abc import Sequence
from math import fsum, sqrt

from paritrace.attempts.statistics.proportions import clopper_pearson
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable, TaskOutcomes
from paritrace.statistics.intervals import t_interval
from paritrace.statistics.records import Interval

FEW_TASKS = 20  # below it clustered errors are known to be too small: a permutation test is the better answer
MACRO = "mean over tasks of the mean over their evaluated attempts"
MICRO = "mean over evaluated attempts"


def macro_mean(tasks: Sequence[TaskOutcomes], *, level: float) -> Estimate | Absent:
    """Returns the mean over tasks of each task's mean, with a t interval of C - 1 degrees of freedom.

    Conditional on the evaluated attempts. Fewer than two tasks, or no variance at all, gives no error and no interval,
    never 0.0; where every evaluated attempt passed, or none did, the exact interval of Clopper and Pearson stands, with
    a task as one trial.
    """
    means = [_mean(task.values) for task in tasks if task.values]
    if not means:
        return Absent(NotEstimable.NO_DATA)
    count = len(means)
    value = fsum(means) / count
    error = _standard_error(means)
    return Estimate(
        MACRO,
        value,
        error,
        _interval(means, value, error, level=level),
        count,
        sum(len(task.values) for task in tasks),
        _variances(tasks, means),
        (f"fewer than {FEW_TASKS} tasks: the t interval is optimistic",) if 1 < count < FEW_TASKS else (),
    )


def micro_mean(tasks: Sequence[TaskOutcomes], *, level: float) -> Estimate | Absent:
    """Returns the mean over attempts, with the error clustered by task: sqrt(C/(C-1) * sum_c(sum_i dev)^2) / n.

    The cluster-robust variance of an intercept (Liang and Zeger 1986), with the correction C/(C-1).
    """
    return clustered_mean(tasks, level=level, estimand=MICRO)


def clustered_mean(tasks: Sequence[TaskOutcomes], *, level: float, estimand: str) -> Estimate | Absent:
    """Returns the mean over attempts of any value, by the formula of `micro_mean`."""
    there = [task for task in tasks if task.values]
    num = sum(len(task.values) for task in there)
    if not num:
        return Absent(NotEstimable.NO_DATA)
    value = fsum(one for task in there for one in task.values) / num
    deviations = [fsum(one - value for one in task.values) for task in there]
    count = len(there)
    spread = fsum(one * one for one in deviations)
    error: float | Absent
    if count < 2:
        error = Absent(NotEstimable.TOO_FEW_TASKS)
    elif _is_nothing(spread):
        error = Absent(NotEstimable.ZERO_VARIANCE)
    else:
        error = sqrt(count / (count - 1) * spread) / num
    interval = error if isinstance(error, Absent) else t_interval(value, error, df=count - 1, level=level)
    return Estimate(estimand, value, error, interval, count, num)


def interval_over_tasks(values: Sequence[float], *, level: float) -> Interval | Absent:
    """Returns the t interval of the mean of one value per task, each in [0, 1], with n - 1 degrees of freedom.

    Where all are 1, or all 0, the exact bound of Clopper and Pearson stands: a value in [0, 1] is 1 at most as often as
    its mean says, so the bound of a share holds for the mean too.
    """
    if not values:
        return Absent(NotEstimable.NO_DATA)
    return _interval(values, _mean(values), _standard_error(values), level=level)


def _interval(means: Sequence[float], value: float, error: float | Absent, *, level: float) -> Interval | Absent:
    if not isinstance(error, Absent):
        return t_interval(value, error, df=len(means) - 1, level=level)
    if all(mean == 1.0 for mean in means) or all(mean == 0.0 for mean in means):
        return clopper_pearson(round(fsum(means)), len(means), level=level)
    return error


def _standard_error(means: Sequence[float]) -> float | Absent:
    if len(means) < 2:
        return Absent(NotEstimable.TOO_FEW_TASKS)
    variance = _variance(means)
    return Absent(NotEstimable.ZERO_VARIANCE) if _is_nothing(variance) else sqrt(variance / len(means))


def _variances(tasks: Sequence[TaskOutcomes], means: Sequence[float]) -> dict[str, float]:
    """Variance between tasks and inside them, so that a reader sees whether more attempts or more tasks help."""
    repeated = [task.values for task in tasks if len(task.values) > 1]
    facts: dict[str, float] = {}
    if len(means) > 1:
        facts["variance_between_tasks"] = _variance(means)
    if repeated:
        facts["variance_within_tasks"] = fsum(_variance(values) for values in repeated) / len(repeated)
    return facts


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return fsum((one - mean) ** 2 for one in values) / (len(values) - 1)


def _is_nothing(spread: float) -> bool:
    """Whether a sum of squares is no more than rounding of numbers of order one."""
    return spread < 1e-24
