"""Two configurations against each other: matched tasks, the difference, what it supports: pure (AT-10, AT-13)."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec.structs import replace

from paritrace.attempts.cautions import across
from paritrace.attempts.claims import Analysis, Claimed, claimed, interval_of
from paritrace.attempts.completion import Side, bounds, differences, side_of
from paritrace.attempts.details import evaluator_name
from paritrace.attempts.looks import Looked
from paritrace.attempts.manifest import Manifest, Primary, PrimaryTest
from paritrace.attempts.matching import Task, matching
from paritrace.attempts.result import Claim, CostDifference, FieldAgreement, OfConfiguration, PairOf
from paritrace.attempts.statistics.costs import cost_difference
from paritrace.attempts.statistics.paired import minimum_detectable, paired_difference, sign_flip
from paritrace.attempts.statistics.proportions import mcnemar
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable, TaskOutcomes, TestResult
from paritrace.attempts.tallies import JudgedTasks, Tally
from paritrace.correspondence.vocabulary import Agreement
from paritrace.evidence.coverage import CoverageState
from paritrace.statistics.intervals import t_p_value
from paritrace.statistics.several import holm

DEFAULT_LEVEL = 0.95


def level_of(head: Manifest) -> float:
    """Returns the level of all intervals: that of the primary analysis where one is declared."""
    return head.primary.level if head.primary is not None else DEFAULT_LEVEL


def pairs_of(head: Manifest, *, baseline: str | None, candidate: str | None) -> tuple[tuple[str, str], ...]:
    """Returns which configurations are compared: those named, else the primary pair, else every two of them."""
    names = [one.id for one in head.configurations]
    if baseline is not None or candidate is not None:
        rest = [name for name in names if name not in (baseline, candidate)]
        left = [baseline] if baseline is not None else rest
        right = [candidate] if candidate is not None else rest
        return tuple((one, other) for one in left for other in right)
    if head.primary is not None:
        return ((head.primary.baseline, head.primary.candidate),)
    return tuple(combinations(names, 2))


def compared(
    names: tuple[str, str],
    tallies: Mapping[str, Tally],
    configurations: Mapping[str, OfConfiguration],
    head: Manifest,
    *,
    history: Looked,
) -> PairOf:
    """Returns the comparison of two configurations, as far as the evidence goes; `history`: what earlier looks mean."""
    primary = head.primary if _is_primary(head.primary, names) and not history.redeclared else None
    judges = _judges(tallies[names[0]], tallies[names[1]], primary)
    sides = configurations[names[0]], configurations[names[1]]
    tasks = matching(_tasks(tallies[names[0]]), _tasks(tallies[names[1]]))
    pair = PairOf(
        baseline=names[0],
        candidate=names[1],
        evaluator=None,
        primary=primary is not None,
        matching=tasks,
        fields=_fields(*sides),
        difference=Absent(NotEstimable.NOT_COMPARABLE),
        bounds=Absent(NotEstimable.NOT_COMPARABLE),
        worst_case_interval=Absent(NotEstimable.NOT_COMPARABLE),
        anytime_interval=Absent(NotEstimable.NOT_COMPARABLE),
        tests=(),
        correlation=Absent(NotEstimable.NOT_COMPARABLE),
        minimum_detectable=Absent(NotEstimable.NOT_COMPARABLE),
        claim=Claim.NOT_COMPARABLE,
        claim_reasons=(),
        exploratory=primary is None,
        tipping=(),
        lost={},
        cost_difference=_cost_difference(sides, names, tallies, tasks.matched, level=_level(primary)),
        warnings=tuple(across(sides)),
    )
    if isinstance(judges, str) or not tasks.matched:
        why = judges if isinstance(judges, str) else "no task is in both configurations with the same revision"
        return replace(pair, claim_reasons=(why,))
    return _with_outcomes(pair, judges, head, primary, history=history)


def _with_outcomes(
    pair: PairOf, judges: tuple[JudgedTasks, JudgedTasks], head: Manifest, primary: Primary | None, *, history: Looked
) -> PairOf:
    evaluator = judges[0].evaluator or judges[1].evaluator
    scored = judges[0].scored or judges[1].scored
    ranges = (0.0, 1.0) if not scored else head.score_ranges.get(evaluator.id if evaluator is not None else "")
    outcomes = tuple(_outcomes(judge, pair.matching.matched) for judge in judges)
    first, second = side_of(outcomes[0]), side_of(outcomes[1])
    values = [float(one) for one in differences(first, second)]
    level = _level(primary)
    test = primary.test if primary is not None else PrimaryTest.PAIRED_T
    analysis = Analysis(test, history.divided(level), anytime=history.extended)
    found = replace(
        pair,
        evaluator=evaluator,
        difference=_difference(values, outcomes, level=level),
        tests=_tests(values, first, second, level=level, scored=scored),
        correlation=_correlation(first, second),
        minimum_detectable=minimum_detectable(values, level=level),
        lost=_lost(judges, pair),
    )
    if ranges is None:
        gap: Absent = Absent(NotEstimable.NO_RANGE, "declare it in `score_ranges`")
        why = "nobody declared the lowest and the highest score: missing ones have no worst case"
        return replace(
            found,
            bounds=gap,
            worst_case_interval=gap,
            anytime_interval=gap,
            claim=Claim.UNDETERMINED,
            claim_reasons=(why,),
        )
    analysis = replace(analysis, low=ranges[0], high=ranges[1])
    decided = claimed(first, second, analysis, names=(pair.baseline, pair.candidate))
    return _with_claim(found, decided, (first, second), analysis, history=history)


def _with_claim(
    pair: PairOf, found: Claimed, sides: tuple[Side, Side], analysis: Analysis, *, history: Looked
) -> PairOf:
    reasons = [*found.reasons, *history.remarks]
    if pair.exploratory:
        reasons.append("no primary analysis was declared for this pair before results were read: exploratory")
    if history.num_planned > 1 and not analysis.anytime:
        reasons.append(f"{history.num_planned} looks are planned: each decides at level {analysis.level:.4g}")
    if analysis.anytime:
        reasons.append("the attempts were extended beyond the plan: only an anytime-valid interval may claim")
    values = [float(one) for one in differences(*sides)]
    return replace(
        pair,
        bounds=bounds(*sides, low=analysis.low, high=analysis.high),
        worst_case_interval=found.worst_case_interval,
        anytime_interval=interval_of(values, replace(analysis, anytime=True)),
        claim=found.claim,
        claim_reasons=tuple(reasons),
        tipping=found.tipping,
    )


def with_holm(pairs: Sequence[PairOf]) -> tuple[PairOf, ...]:
    """Returns the pairs with the p values of each test adjusted over all pairs that have it (AT-13).

    A claim of a pair that no primary analysis was declared for has to hold after the adjustment too.
    """
    adjusted = list(pairs)
    for name in sorted({test.name for pair in pairs for test in pair.tests}):
        places = [(at, test) for at, pair in enumerate(pairs) for test in pair.tests if test.name == name]
        for (at, test), p_value in zip(places, holm([test.p_value for _, test in places]), strict=True):
            tests = tuple(replace(one, p_holm=p_value) if one.name == test.name else one for one in adjusted[at].tests)
            adjusted[at] = replace(adjusted[at], tests=tests)
    return tuple(_held_to_holm(one) for one in adjusted) if len(pairs) > 1 else tuple(adjusted)


def _held_to_holm(pair: PairOf) -> PairOf:
    by_t = next((one for one in pair.tests if one.name == T_TEST), None)
    claims = pair.claim in (Claim.CONDITIONAL, Claim.ROBUST)
    if pair.primary or not claims or by_t is None or (by_t.p_holm or 0) < 1 - DEFAULT_LEVEL:
        return pair
    why = "after adjustment over all comparisons (Holm) the difference is not significant"
    return replace(pair, claim=Claim.UNDETERMINED, claim_reasons=(*pair.claim_reasons, why))


T_TEST = "paired t test"


def _is_primary(primary: Primary | None, names: tuple[str, str]) -> bool:
    return primary is not None and (primary.baseline, primary.candidate) == names


def _judges(first: Tally, second: Tally, primary: Primary | None) -> tuple[JudgedTasks, JudgedTasks] | str:
    """The verdicts to compare, by one evaluator on both sides; else why there are none."""
    if primary is not None and primary.evaluator is not None:
        wanted = primary.evaluator
        found = [next((one for one in tally.judges if one.evaluator == wanted), None) for tally in (first, second)]
        if found[0] is None or found[1] is None:
            return f"the declared evaluator {evaluator_name(wanted)} did not judge both configurations"
        return found[0], found[1]
    for tally in (first, second):
        if len(tally.judges) > 1:
            return f"{tally.name} was judged by several evaluators, and none was declared for the primary analysis"
    mine, theirs = first.judges[0], second.judges[0]
    if mine.evaluator is None and theirs.evaluator is None:
        return "nothing was evaluated"
    if mine.evaluator is not None and theirs.evaluator is not None and mine.evaluator != theirs.evaluator:
        return f"they were judged by {evaluator_name(mine.evaluator)} and {evaluator_name(theirs.evaluator)}"
    return mine, theirs


def _tasks(tally: Tally) -> set[Task]:
    return {task for judge in tally.judges for task in judge.values}


def _outcomes(judge: JudgedTasks, tasks: Sequence[Task]) -> tuple[TaskOutcomes, ...]:
    return tuple(
        TaskOutcomes(task, tuple(sorted(judge.values[task])), len(judge.missing.get(task, ()))) for task in tasks
    )


def _difference(
    values: Sequence[float], outcomes: Sequence[Sequence[TaskOutcomes]], *, level: float
) -> Estimate | Absent:
    found = paired_difference(values, level=level)
    if isinstance(found, Absent):
        return found
    attempts = sum(len(task.values) for side in outcomes for task in side)
    left_out = len(outcomes[0]) - len(values)
    remarks = (f"{left_out} matched tasks have no verdict on one side and are left out",) if left_out else ()
    return replace(found, num_attempts=attempts, remarks=remarks)


def _tests(values: Sequence[float], first: Side, second: Side, *, level: float, scored: bool) -> tuple[TestResult, ...]:
    if not values:
        return ()
    found: list[TestResult] = []
    by_t = paired_difference(values, level=level)
    if isinstance(by_t, Estimate) and not isinstance(by_t.standard_error, Absent):
        p_value = t_p_value(by_t.value, by_t.standard_error, df=len(values) - 1)
        found.append(TestResult(T_TEST, p_value, len(values), {"df": len(values) - 1}))
    found.append(sign_flip(values))
    one_each = bool(
        (first.num_judged + first.num_missing == 1).all() and (second.num_judged + second.num_missing == 1).all()
    )
    if one_each and not scored:
        found.append(mcnemar(sum(one > 0 for one in values), sum(one < 0 for one in values)))
    return tuple(found)


def _correlation(first: Side, second: Side) -> float | Absent:
    both = (first.num_judged > 0) & (second.num_judged > 0)
    if both.sum() < 2:
        return Absent(NotEstimable.TOO_FEW_TASKS)
    mine = first.sums[both] / first.num_judged[both]
    theirs = second.sums[both] / second.num_judged[both]
    if mine.std() < 1e-12 or theirs.std() < 1e-12:
        return Absent(NotEstimable.ZERO_VARIANCE)
    return float(np.corrcoef(mine, theirs)[0, 1])


def _lost(judges: tuple[JudgedTasks, JudgedTasks], pair: PairOf) -> dict[str, tuple[str, ...]]:
    """The attempts at matched tasks that have no verdict, by name."""
    return {
        name: tuple(sorted(one for task in pair.matching.matched for one in judge.missing.get(task, ())))
        for name, judge in zip((pair.baseline, pair.candidate), judges, strict=True)
    }


def _fields(first: OfConfiguration, second: OfConfiguration) -> tuple[FieldAgreement, ...]:
    found: list[FieldAgreement] = []
    for name in sorted(first.fields.keys() | second.fields.keys()):
        mine, theirs = first.fields.get(name, (None,)), second.fields.get(name, (None,))
        agreement, why = Agreement.EQUAL if mine == theirs else Agreement.DIFFERENT, ""
        if None in mine or None in theirs:
            agreement, why = Agreement.NOT_COMPARABLE, "not recorded everywhere"
        found.append(FieldAgreement(name, agreement, mine, theirs, why))
    return tuple(found)


def _level(primary: Primary | None) -> float:
    return primary.level if primary is not None else DEFAULT_LEVEL


def _cost_difference(
    sides: tuple[OfConfiguration, OfConfiguration],
    names: tuple[str, str],
    tallies: Mapping[str, Tally],
    matched: Sequence[Task],
    *,
    level: float,
) -> CostDifference | Absent:
    """Mean cost per attempt, baseline minus candidate, under one verified basis and complete sums (AT-8)."""
    first, second = sides
    if not first.costs or not second.costs:
        return Absent(NotEstimable.NOT_RECORDED)
    (mine, *more), (theirs, *others) = first.costs, second.costs
    if more or others or mine.basis != theirs.basis:
        return Absent(NotEstimable.DIFFERENT_PRICING)
    if not mine.basis.verified:
        return Absent(NotEstimable.UNVERIFIED_PRICING)
    if {mine.sum.state, theirs.sum.state} != {CoverageState.COMPLETE}:
        return Absent(NotEstimable.INCOMPLETE)
    spent = [tallies[name].task_costs.get(mine.basis, {}) for name in names]
    return CostDifference(mine.basis, cost_difference(spent[0], spent[1], matched, level=level))
