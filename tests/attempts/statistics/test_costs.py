"""Costs over tasks: the formulas, and how often their intervals hold (AT-8, AT-13)."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from paritrace.attempts.statistics.costs import cost_difference, cost_per_attempt, per_pass_interval
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable
from paritrace.statistics.records import Interval

T1, T2, T3 = ("t1", "1"), ("t2", "1"), ("t3", "1")


def test_cost_per_attempt_is_clustered_by_task() -> None:
    found = cost_per_attempt({T1: [1.0, 1.0], T2: [2.0], T3: [4.0]}, level=0.95)
    assert isinstance(found, Estimate)
    assert found.value == 2.0
    assert found.standard_error == pytest.approx(sqrt(3 / 2 * (2.0**2 + 0.0 + 2.0**2)) / 4)
    assert cost_per_attempt({}, level=0.95) == Absent(NotEstimable.NO_DATA)


def test_cost_per_pass_with_one_pass_a_task_is_the_interval_of_a_mean() -> None:
    amounts = [1.0, 2.0, 4.0, 7.0]
    spent = {(f"t{number}", "1"): [one] for number, one in enumerate(amounts)}
    found = per_pass_interval(spent, dict.fromkeys(spent, 1.0), level=0.95)
    wanted = stats.t.interval(0.95, 3, loc=np.mean(amounts), scale=stats.sem(amounts))
    assert isinstance(found, Interval)
    assert found.low == pytest.approx(max(0.0, wanted[0]))
    assert found.high == pytest.approx(wanted[1])


def test_cost_per_pass_is_not_estimable_without_a_pass_a_second_task_or_variance() -> None:
    assert per_pass_interval({T1: [1.0], T2: [2.0]}, {}, level=0.95) == Absent(NotEstimable.NO_DATA, "nothing passed")
    assert per_pass_interval({T1: [1.0]}, {T1: 1.0}, level=0.95) == Absent(NotEstimable.TOO_FEW_TASKS)
    alike = per_pass_interval({T1: [0.1], T2: [0.1]}, {T1: 1.0, T2: 1.0}, level=0.95)
    assert alike == Absent(NotEstimable.ZERO_VARIANCE)


def test_cost_per_pass_holds_about_as_often_as_its_level_says() -> None:
    rng = np.random.default_rng(7)
    truth = 2.0 / 0.5  # mean cost of a task over its mean passes
    holds = 0
    for _ in range(400):
        passed = rng.random(60) < 0.5
        cost = rng.exponential(2.0, 60)
        spent = {(f"t{number}", "1"): [float(one)] for number, one in enumerate(cost)}
        passes = {(f"t{number}", "1"): float(one) for number, one in enumerate(passed)}
        found = per_pass_interval(spent, passes, level=0.95)
        holds += isinstance(found, Interval) and found.low <= truth <= found.high
    assert 0.90 <= holds / 400 <= 0.99


def test_a_cost_difference_is_paired_and_leaves_out_what_is_on_one_side() -> None:
    found = cost_difference({T1: [1.0, 3.0], T2: [5.0]}, {T1: [1.0], T3: [9.0]}, [T1, T2], level=0.95)
    assert isinstance(found, Estimate)
    assert (found.value, found.num_tasks) == (1.0, 1)
    assert cost_difference({}, {}, [T1], level=0.95) == Absent(NotEstimable.NO_DATA)
