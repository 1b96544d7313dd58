"""From a configuration's tally to its part of the summary: pure (AT-9 to AT-13)."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from paritrace.attempts.accounts import PricingBasis
from paritrace.attempts.details import basis_name
from paritrace.attempts.figures import Figure, Sum, Summing
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.manifest import Configuration, Relation
from paritrace.attempts.pricing import cost_figures
from paritrace.attempts.rate_card import RateCard, basis_of
from paritrace.attempts.result import (
    CostPerPass,
    CostSum,
    Durations,
    Fractions,
    MatrixCell,
    OfConfiguration,
    OfEvaluator,
    Reconciled,
)
from paritrace.attempts.statistics.costs import cost_per_attempt, per_pass_interval
from paritrace.attempts.statistics.durations import Incidence, incidence_of_pass
from paritrace.attempts.statistics.means import macro_mean, micro_mean
from paritrace.attempts.statistics.pass_at_k import PassAtK, pass_at_k
from paritrace.attempts.statistics.proportions import wilson
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable, TaskOutcomes
from paritrace.attempts.tallies import JudgedTasks, Tally
from paritrace.attempts.usage import Tokens, token_figures
from paritrace.evidence.coverage import Coverage, CoverageState, ExpectedGap, coverage, state
from paritrace.evidence.gaps import Gap
from paritrace.statistics.records import Interval

ROUNDING = 1e-12  # relative: a difference of two sums of the same amounts
MOST_K = 8  # pass@k is given for k = 1, 2, 4, 8 as far as any task has so many attempts


def of_configuration(tally: Tally, declared: Configuration, *, level: float, card: RateCard | None) -> OfConfiguration:
    """Returns what a tally says; `declared` is what the manifest says of the configuration itself."""
    complete = declared.attempts_complete
    for gap in declared.gaps:
        tally.gaps[gap.reason] += gap.count
        for summing in (*tally.tokens.values(), *((tally.repriced,) if tally.repriced else ())):
            summing.note(gap.reason, gap.count)
    tokens = {str(kind): summing.result(declared=complete) for kind, summing in tally.tokens.items()}
    costs = _costs(tally, declared, level=level)
    attempts = _attempts(tally, declared)
    relation = _relation(tally, declared)
    judges = tuple(_of_evaluator(judge, relation, level=level) for judge in tally.judges)
    return OfConfiguration(
        id=declared.id,
        attempts=attempts,
        attempts_state=state(attempts),
        num_tasks=len({task for judge in tally.judges for task in judge.values}),
        num_retried=tally.num_retried,
        stops=_sorted(tally.stops),
        executions=_sorted(tally.executions),
        evaluators=judges,
        combined=len(tally.judges) == 1,
        matrix=_matrix(tally),
        requests=_sorted(tally.requests),
        requests_state=_requests_state(tally),
        tokens=tokens,
        inherited_tokens={str(kind): one.result(declared=complete) for kind, one in sorted(tally.inherited.items())},
        costs=costs,
        repriced=None
        if card is None or tally.repriced is None
        else CostSum(basis_of(card), tally.repriced.result(declared=complete), Absent(NotEstimable.NOT_RECORDED)),
        cost_per_pass=tuple(_cost_per_pass(costs, judges, tally, level=level)),
        durations=_durations(tally, complete),
        fields=_fields(tally, declared),
        differing_fields=tuple(name for name, values in sorted(_fields(tally, declared).items()) if len(values) > 1),
        reconciled=tuple(_reconciled(declared, tokens, costs)),
        gaps=_sorted(tally.gaps),
        noted=declared.gaps,
    )


def outcomes(judge: JudgedTasks) -> tuple[TaskOutcomes, ...]:
    """Returns the outcomes by task, in an order that no input order touches."""
    return tuple(
        TaskOutcomes(task, tuple(sorted(values)), len(judge.missing.get(task, ())))
        for task, values in sorted(judge.values.items())
    )


def _attempts(tally: Tally, declared: Configuration) -> Coverage:
    expected: int | Gap[ExpectedGap] = tally.num_planned
    if not declared.attempts_complete:
        expected = Gap(ExpectedGap.NOT_DECLARED, f"{tally.num_planned} are listed")
    gaps = {str(AttemptGap.RESULT_MISSING): tally.num_planned - tally.num_present}
    return coverage(tally.num_present, expected=expected, declared=declared.attempts_complete, gaps=gaps)


def _relation(tally: Tally, declared: Configuration) -> Relation:
    """How the attempts of a task are related: independent only where all of them are said to be."""
    said = set(tally.relations) - {Relation.UNKNOWN}
    if Relation.UNKNOWN in tally.relations:
        said.add(declared.relation)
    if tally.num_retried:
        said.discard(Relation.INDEPENDENT)
        said = said or {Relation.UNKNOWN}
    return said.pop() if len(said) == 1 else Relation.UNKNOWN


def _of_evaluator(judge: JudgedTasks, relation: Relation, *, level: float) -> OfEvaluator:
    tasks = outcomes(judge)
    return OfEvaluator(
        evaluator=judge.evaluator,
        states=_sorted(judge.states),
        fractions=_fractions(judge, tasks, level=level),
        mean_over_tasks=macro_mean(tasks, level=level),
        mean_over_attempts=micro_mean(tasks, level=level),
        pass_at_k=_pass_at_k(tasks, relation, level=level),
        time_to_pass=_time_to_pass(judge),
    )


def _fractions(judge: JudgedTasks, tasks: Sequence[TaskOutcomes], *, level: float) -> Fractions | Absent:
    if judge.scored:
        return Absent(NotEstimable.NOT_BINARY)
    evaluated = sum(len(task.values) for task in tasks)
    planned = sum(task.num for task in tasks)
    passes = round(fsum(value for task in tasks for value in task.values))
    interval: Interval | Absent = Absent(NotEstimable.NOT_ONE_ATTEMPT_PER_TASK)
    if not evaluated:
        interval = Absent(NotEstimable.NO_DATA)
    elif all(task.num == 1 for task in tasks):
        interval = wilson(passes, evaluated, level=level)
    return Fractions(
        passes,
        evaluated,
        planned,
        passes / evaluated if evaluated else None,
        passes / planned if planned else None,
        (passes / planned, (passes + planned - evaluated) / planned) if planned else None,
        interval,
    )


def _pass_at_k(tasks: Sequence[TaskOutcomes], relation: Relation, *, level: float) -> tuple[PassAtK, ...] | Absent:
    if relation is not Relation.INDEPENDENT:
        return Absent(NotEstimable.NOT_INDEPENDENT, f"the attempts of a task are {relation}")
    most = max((len(task.values) for task in tasks), default=0)
    found: list[PassAtK] = []
    k = 1
    while k <= min(most, MOST_K):
        one = pass_at_k(tasks, k, level=level)
        if isinstance(one, Absent):
            return one
        found.append(one)
        k *= 2
    return tuple(found) if found else Absent(NotEstimable.NO_DATA)


def _time_to_pass(judge: JudgedTasks) -> Incidence | Absent:
    if judge.num_without_duration:
        return Absent(NotEstimable.NOT_RECORDED, f"attempts without a task duration: {judge.num_without_duration}")
    return incidence_of_pass(sorted(judge.endings))


def _matrix(tally: Tally) -> tuple[MatrixCell, ...]:
    cells: dict[tuple[int, int], tuple[int, int]] = {}
    for (first, second, agree), count in tally.both.items():
        both, agreeing = cells.get((first, second), (0, 0))
        cells[first, second] = (both + count, agreeing + count * agree)
    found: list[MatrixCell] = []
    for (first, second), (both, agreeing) in sorted(cells.items()):
        one, other = tally.judges[first].evaluator, tally.judges[second].evaluator
        if one is not None and other is not None:
            found.append(MatrixCell(one, other, both, agreeing))
    return tuple(found)


def _requests_state(tally: Tally) -> CoverageState:
    if not tally.requests_declared:
        return CoverageState.UNVERIFIED
    short = any(count for name, count in tally.requests.items() if name != "result")
    return CoverageState.INCOMPLETE if short else CoverageState.COMPLETE


def _costs(tally: Tally, declared: Configuration, *, level: float) -> tuple[CostSum, ...]:
    sums = tally.costs()
    for summing in sums.values():
        for gap in declared.gaps:
            summing.note(gap.reason, gap.count)
    found: list[CostSum] = []
    for basis, one in sums.items():
        total = one.result(declared=declared.attempts_complete)
        each: Estimate | Absent = Absent(NotEstimable.INCOMPLETE)
        if total.state is CoverageState.COMPLETE:
            each = cost_per_attempt(tally.task_costs.get(basis, {}), level=level)
        found.append(CostSum(basis, total, each))
    return tuple(sorted(found, key=lambda one: basis_key(one.basis)))


def basis_key(basis: PricingBasis) -> tuple[str, ...]:
    """Returns by what pricing bases are sorted."""
    return str(basis.kind), basis.id, basis.version, basis.currency, str(basis.verified)


def _cost_per_pass(
    costs: Iterable[CostSum], judges: Sequence[OfEvaluator], tally: Tally, *, level: float
) -> Iterable[CostPerPass]:
    """Cost per pass, exact only where both are complete; else the least cost over the most passes (AT-13)."""
    if len(judges) != 1 or isinstance(judges[0].fractions, Absent):
        return
    fractions = judges[0].fractions
    most = fractions.passes + fractions.num_attempts - fractions.num_evaluated
    for cost in costs:
        whole = cost.sum.state is CoverageState.COMPLETE and fractions.num_evaluated == fractions.num_attempts
        if not most:
            continue
        interval: Interval | Absent = Absent(NotEstimable.INCOMPLETE)
        if whole:
            passes = {task: fsum(values) for task, values in tally.judges[0].values.items()}
            interval = per_pass_interval(tally.task_costs.get(cost.basis, {}), passes, level=level)
        yield CostPerPass(cost.basis, cost.sum.low / most, at_least=not whole, interval=interval)


def _durations(tally: Tally, declared: bool) -> Durations:
    return Durations(
        tally.task_seconds.result(declared=declared),
        tally.union_seconds.result(declared=declared),
        tally.num_invocations,
        tally.num_overlapping,
        tally.num_resources,
        tally.num_not_fitting,
    )


def _fields(tally: Tally, declared: Configuration) -> dict[str, tuple[str | None, ...]]:
    names = tally.fields.keys() | declared.fields.keys()
    found: dict[str, tuple[str | None, ...]] = {}
    for name in sorted(names):
        values = set(tally.fields.get(name, ()))
        if name in declared.fields:
            values.add(declared.fields[name])
        found[name] = tuple(sorted(values, key=lambda one: (one is None, one or "")))
    return found


def _reconciled(declared: Configuration, tokens: Mapping[str, Sum], costs: Sequence[CostSum]) -> Iterable[Reconciled]:
    for total in declared.totals:
        figures = token_figures(total.accounting)
        for kind in Tokens:
            if figures[kind].known:
                yield _against(total.id, str(kind), figures[kind], tokens[kind])
        for basis, figure in sorted(cost_figures(total.accounting).items(), key=lambda one: basis_key(one[0])):
            ours = next((one.sum for one in costs if one.basis == basis), Summing().result(declared=False))
            yield _against(total.id, f"cost, {basis_name(basis)}", figure, ours)


def _against(total_id: str, name: str, total: Figure, ours: Sum) -> Reconciled:
    """The total less what attempts are known to have used; what is left belongs to no attempt that is seen."""
    left = total.low - ours.observed_sum
    if abs(left) <= ROUNDING * abs(total.low):
        left = 0  # the tool added floats in its own order
    return Reconciled(total_id, name, total, ours, left if total.known else None)


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return {str(name): count for name, count in sorted(counts.items()) if count}
