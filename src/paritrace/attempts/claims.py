"""How much a paired difference supports, by the declared analysis: the claim ladder: pure (AT-14)."""

from collections.abc import Callable, Sequence
from math import fsum

import numpy as np
from msgspec import Struct

from paritrace.attempts.completion import Array, Path, Side, differences, path_against, worst_case
from paritrace.attempts.manifest import PrimaryTest
from paritrace.attempts.result import Claim, Tipping
from paritrace.attempts.statistics.anytime import anytime_interval
from paritrace.attempts.statistics.paired import paired_difference, sign_flip
from paritrace.attempts.statistics.proportions import mcnemar
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable
from paritrace.statistics.records import Interval

Values = Sequence[float] | Array
ROUNDING = 1e-12  # a mean of verdicts that is smaller is zero


class Analysis(Struct, frozen=True):
    """The analysis that decides. `low` and `high` bound one verdict; `anytime`: only such an interval may claim."""

    test: PrimaryTest
    level: float
    low: float = 0.0
    high: float = 1.0
    anytime: bool = False


class Claimed(Struct, frozen=True):
    """A rung of the ladder, why it is no higher, and the interval under the worst-case completion."""

    claim: Claim
    reasons: tuple[str, ...]
    worst_case_interval: Interval | Absent
    tipping: tuple[Tipping, ...]


def claimed(baseline: Side, candidate: Side, analysis: Analysis, *, names: tuple[str, str]) -> Claimed:
    """Returns the highest rung that the evidence supports.

    `difference robust to missing evidence` needs the declared analysis to hold on the worst-case completion; point
    bounds that keep their sign are not enough (28 % of simulated true nulls would be called robust by them).
    """
    complete = differences(baseline, candidate)
    value = fsum(complete) / len(complete) if len(complete) else 0.0
    if abs(value) < ROUNDING:
        why = "no matched task has a verdict on both sides" if not len(complete) else "the mean difference is zero"
        return Claimed(Claim.UNDETERMINED, (why,), _none_of(complete), ())
    path = path_against(baseline, candidate, sign=value, low=analysis.low, high=analysis.high)
    worst = worst_case(baseline, candidate, sign=value, low=analysis.low, high=analysis.high)
    interval = interval_of(worst, analysis)
    holds = excludes_zero(complete, analysis, sign=value)
    tipping = [_tipping("sign", path, lambda found: _mean(found) * value > ROUNDING, names=names)]
    if not holds:
        why = f"the analysis ({analysis_name(analysis)}) does not exclude zero on the evaluated attempts"
        return Claimed(Claim.UNDETERMINED, (why,), interval, tuple(tipping))
    tipping.append(_tipping("claim", path, lambda found: excludes_zero(found, analysis, sign=value), names=names))
    if excludes_zero(worst, analysis, sign=value):
        return Claimed(Claim.ROBUST, (), interval, tuple(tipping))
    why = "on the worst-case completion of the missing verdicts the analysis does not exclude zero"
    return Claimed(Claim.CONDITIONAL, (why,), interval, tuple(tipping))


def excludes_zero(values: Values, analysis: Analysis, *, sign: float) -> bool:
    """Whether the declared analysis finds a difference of this sign; where it cannot be computed it finds none."""
    if not len(values) or _mean(values) * sign <= ROUNDING:
        return False
    if analysis.anytime or analysis.test is PrimaryTest.PAIRED_T:
        interval = interval_of(values, analysis)
        return not isinstance(interval, Absent) and not interval.low <= 0 <= interval.high
    alpha = 1 - analysis.level
    if analysis.test is PrimaryTest.SIGN_FLIP:
        return sign_flip(list(values)).p_value < alpha
    whole = np.asarray(values)
    if not np.isin(whole, (-1.0, 0.0, 1.0)).all():
        return False  # more than one attempt a task: McNemar's pairs are not there
    return mcnemar(int((whole > 0).sum()), int((whole < 0).sum())).p_value < alpha


def interval_of(values: Values, analysis: Analysis) -> Interval | Absent:
    """Returns the interval that belongs to an analysis: the t interval, or the one that holds at every look."""
    if analysis.anytime:
        reach = analysis.high - analysis.low
        return anytime_interval(list(values), low=-reach, high=reach, level=analysis.level)
    found = paired_difference(list(values), level=analysis.level)
    return found.interval if isinstance(found, Estimate) else found


def analysis_name(analysis: Analysis) -> str:
    """Returns the analysis in words."""
    if analysis.anytime:
        return f"anytime-valid interval, level {analysis.level:g}"
    words = {
        PrimaryTest.PAIRED_T: "paired t interval",
        PrimaryTest.SIGN_FLIP: "sign-flip permutation test",
        PrimaryTest.MCNEMAR: "McNemar exact test",
    }
    return f"{words[analysis.test]}, level {analysis.level:g}"


def _tipping(statement: str, path: Path, holds: Callable[[Array], bool], *, names: tuple[str, str]) -> Tipping:
    """The first place on the path where a statement no longer holds, by halving: what holds is falling on it."""
    ahead, behind = names if path.baseline_leads else names[::-1]
    of_behind, of_ahead = len(path.order_behind), len(path.order_ahead)
    if not path.num:
        return Tipping(statement, behind, None, 0, f"no attempt is missing: nothing can turn the {statement}")
    if holds(path.at(path.num)):
        told = f"the {statement} stands whatever the {path.num} missing attempts were"
        return Tipping(statement, behind, None, path.num, told)
    low, high = 0, path.num  # it holds at low, and no longer at high
    while high - low > 1:
        middle = (low + high) // 2
        if holds(path.at(middle)):
            low = middle
        else:
            high = middle
    passed = f"{min(high, of_behind)} of the {of_behind} missing attempts of {behind} passed"
    if high <= of_behind:
        return Tipping(statement, behind, high, of_behind, f"the {statement} flips if {passed}")
    failed = f"{high - of_behind} of the {of_ahead} missing attempts of {ahead} failed"
    told = f"the {statement} flips if {passed} and {failed}" if of_behind else f"the {statement} flips if {failed}"
    return Tipping(statement, ahead, high, path.num, told)


def _mean(values: Values) -> float:
    return fsum(values) / len(values) if len(values) else 0.0


def _none_of(values: Values) -> Absent:
    return Absent(NotEstimable.ZERO_VARIANCE if len(values) else NotEstimable.NO_DATA)
