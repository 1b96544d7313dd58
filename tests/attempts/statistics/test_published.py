"""Published worked examples and values of other libraries, reproduced (AT-13).

Values named statsmodels are of statsmodels 0.15.0: `OLS(y, 1).fit(cov_type="cluster", use_t=True)`,
`contingency_tables.mcnemar(exact=True)`, `multitest.multipletests(method="holm")`, `TTestPower().solve_power`.
"""

import numpy as np
import pytest
from scipy import stats

from paritrace.attempts.statistics.anytime import anytime_interval
from paritrace.attempts.statistics.durations import Ending, Incidence, incidence_of_pass
from paritrace.attempts.statistics.means import macro_mean, micro_mean
from paritrace.attempts.statistics.paired import detectable_effect, paired_difference, sign_flip
from paritrace.attempts.statistics.pass_at_k import PassAtK, pass_at_k
from paritrace.attempts.statistics.proportions import clopper_pearson, mcnemar, wilson
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable, TaskOutcomes
from paritrace.statistics.intervals import t_p_value
from paritrace.statistics.records import Interval

# cross- less self-fertilised heights of Zea mays, in eighths of an inch (Darwin 1876, as in Fisher 1935, chapter III)
ZEA_MAYS = (49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0)
CLUSTERS = ((1, 0, 1), (1, 1, 1), (0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1), (1, 1, 0, 1))


def tasks(*values: tuple[float, ...]) -> list[TaskOutcomes]:
    return [TaskOutcomes((str(number), "1"), tuple(map(float, one))) for number, one in enumerate(values)]


def test_at_13_clustered_standard_error_is_that_of_statsmodels() -> None:
    found = micro_mean(tasks(*CLUSTERS), level=0.95)
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(0.5714285714285712)
    assert found.standard_error == pytest.approx(0.12382696545556496)
    assert isinstance(found.interval, Interval)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.2684349, 0.87442224))


def test_at_13_paired_t_of_fisher_on_darwins_plants() -> None:
    """Fisher 1935, section 17: mean 20.933, t = 2.148 with 14 degrees of freedom, between 4 and 5 per cent."""
    found = paired_difference(ZEA_MAYS, level=0.95)
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(314 / 15)
    assert isinstance(found.standard_error, float)
    assert found.value / found.standard_error == pytest.approx(2.148, abs=5e-4)
    assert t_p_value(found.value, found.standard_error, df=14) == pytest.approx(0.0497, abs=5e-5)


def test_at_13_sign_flips_of_fisher_on_darwins_plants() -> None:
    """Fisher 1935, section 21: 863 of 32,768 sums are as large on one side, so 1,726 of both."""
    found = sign_flip(ZEA_MAYS)
    assert found.p_value == 1726 / 32768
    assert (found.facts["exact"], found.seed) == (1.0, None)


def test_at_13_beyond_twenty_pairs_flips_are_drawn_by_a_seed_that_is_told() -> None:
    values = [*ZEA_MAYS, *(float(one) for one in range(1, 9))]
    first, second = sign_flip(values), sign_flip(list(reversed(values)))
    assert first == second
    assert first.seed is not None
    assert first.facts["exact"] == 0.0


def test_at_13_one_pair_that_differs_says_nothing() -> None:
    assert sign_flip([0.0, 1.0]).p_value == sign_flip([0.0, 0.0]).p_value == sign_flip([]).p_value == 1.0
    assert sign_flip([0.0, 1.0, 1.0]).p_value == 0.5


@pytest.mark.parametrize(("b", "c", "p"), [(86, 150, 3.7159361395713866e-05), (121, 59, 4.4344492637551645e-06)])
def test_at_13_mcnemar_is_that_of_statsmodels(b: int, c: int, p: float) -> None:
    assert mcnemar(b, c).p_value == pytest.approx(p, rel=1e-9)


def test_at_13_mcnemar_without_a_discordant_pair_says_nothing() -> None:
    assert mcnemar(0, 0).p_value == 1.0


def test_at_13_intervals_of_newcombe() -> None:
    """Newcombe 1998, Statistics in Medicine 17:857, table I, 81 of 263: 0.2553 to 0.3662, exact 0.2527 to 0.3676."""
    score, exact = wilson(81, 263, level=0.95), clopper_pearson(81, 263, level=0.95)
    assert (round(score.low, 4), round(score.high, 4)) == (0.2553, 0.3662)
    assert (round(exact.low, 4), round(exact.high, 4)) == (0.2527, 0.3676)


def test_at_13_twelve_of_twelve_has_an_exact_interval_and_no_standard_error() -> None:
    found = macro_mean(tasks(*((1.0,),) * 12), level=0.95)
    assert isinstance(found, Estimate)
    assert found.standard_error == Absent(NotEstimable.ZERO_VARIANCE)
    assert isinstance(found.interval, Interval)
    assert found.interval.low == pytest.approx(0.7353515306029488)  # 0.025 ** (1 / 12), and statsmodels
    assert found.interval.high == 1.0


def test_at_13_one_cluster_and_nothing_that_varies_are_not_estimable() -> None:
    one = macro_mean(tasks((1.0, 0.0)), level=0.95)
    same = macro_mean(tasks((0.5,), (0.5,), (0.5,)), level=0.95)
    assert isinstance(one, Estimate)
    assert isinstance(same, Estimate)
    assert (one.standard_error, one.interval) == (Absent(NotEstimable.TOO_FEW_TASKS),) * 2
    assert (same.standard_error, same.interval) == (Absent(NotEstimable.ZERO_VARIANCE),) * 2
    assert macro_mean([], level=0.95) == Absent(NotEstimable.NO_DATA)


def of_chen(n: int, c: int, k: int) -> float:
    """The estimator as Chen et al. 2021 print it (Evaluating Large Language Models Trained on Code, figure 3)."""
    if n - c < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


@pytest.mark.parametrize("n", [3, 10, 200])
def test_at_13_pass_at_k_is_that_of_chen(n: int) -> None:
    for c in range(0, n + 1, max(1, n // 10)):
        for k in (1, 2, 3):
            found = pass_at_k(tasks((1.0,) * c + (0.0,) * (n - c)), k, level=0.95)
            assert isinstance(found, PassAtK)
            assert found.pass_at_k == pytest.approx(of_chen(n, c, k))
            every = np.prod([(c - i) / (n - i) for i in range(k)]) if c >= k else 0.0
            assert found.pass_hat_k == pytest.approx(float(every))


def test_at_13_k_is_not_lowered_and_no_task_dropped_unmentioned() -> None:
    found = pass_at_k(tasks((1.0, 0.0, 0.0), (1.0,)), 2, level=0.95)
    assert isinstance(found, PassAtK)
    assert (found.num_eligible_tasks, found.num_tasks) == (1, 2)
    assert pass_at_k(tasks((1.0,)), 2, level=0.95) == Absent(
        NotEstimable.TOO_FEW_ATTEMPTS, "no task has 2 evaluated attempts"
    )
    assert pass_at_k(tasks((0.5,)), 1, level=0.95) == Absent(NotEstimable.NOT_BINARY)


@pytest.mark.parametrize(("num", "effect"), [(3, 3.264043552819638), (34, 0.4950291315285059)])
def test_at_13_detectable_effect_is_that_of_statsmodels(num: int, effect: float) -> None:
    assert detectable_effect(num, level=0.95, power=0.8) == pytest.approx(effect, rel=1e-4)


def test_at_13_incidence_without_censoring_is_the_share_of_attempts() -> None:
    found = incidence_of_pass([(1.0, Ending.PASS), (2.0, Ending.FAIL), (3.0, Ending.PASS), (4.0, Ending.FAIL)])
    assert isinstance(found, Incidence)
    assert found.seconds == (1.0, 3.0)
    assert found.incidence == pytest.approx((0.25, 0.5))


def test_at_13_incidence_without_failures_is_kaplan_meier() -> None:
    """The censored sample of SciPy's own documentation of `ecdf` (Kleinbaum and Klein): one minus its survival."""
    passes, censored = [37.0, 43.0, 47.0, 56.0, 60.0, 62.0, 71.0, 77.0, 80.0, 81.0], [64.0, 73.0, 77.0]
    given = [*((one, Ending.PASS) for one in passes), *((one, Ending.CENSORED) for one in censored)]
    found = incidence_of_pass(given)
    assert isinstance(found, Incidence)
    curve = stats.ecdf(stats.CensoredData(uncensored=passes, right=censored)).sf
    assert found.incidence == pytest.approx([1 - float(curve.evaluate(at)) for at in found.seconds])


def test_at_13_a_failure_is_no_censoring() -> None:
    """A pass after a failure is impossible: taking failures as censored would promise 1.0 in the end."""
    found = incidence_of_pass([(1.0, Ending.FAIL), (2.0, Ending.FAIL), (3.0, Ending.PASS), (2.5, Ending.CENSORED)])
    assert isinstance(found, Incidence)
    assert found.incidence[-1] == pytest.approx(0.5)


def test_at_14_anytime_interval_is_the_mixture_bound() -> None:
    """At the interval's edge the mixture martingale is exactly 1 / alpha (Ville; Howard et al. 2021, eq. 14)."""
    num, alpha = 50, 0.05
    found = anytime_interval([0.0] * num, low=-100.0, high=100.0, level=1 - alpha)
    assert isinstance(found, Interval)
    scale = 100.0
    rho = 100 / (-2 * np.log(alpha) + np.log(-2 * np.log(alpha)) + 1)
    total, variance = found.high * num, num * scale**2
    martingale = np.sqrt(rho / (variance + rho)) * np.exp(total**2 / (2 * (variance + rho)))
    assert martingale == pytest.approx(1 / alpha)
