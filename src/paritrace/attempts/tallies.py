"""What is kept of a configuration while its attempts pass by, one after the other: in no order that matters."""

from collections import Counter
from collections.abc import Iterable

from paritrace.attempts.accounts import PricingBasis
from paritrace.attempts.facts import AttemptFacts
from paritrace.attempts.figures import Figure, Summing, known, unknown
from paritrace.attempts.gaps import OF_COST, OF_USAGE, AttemptGap
from paritrace.attempts.manifest import Evaluator, Relation, StopKind
from paritrace.attempts.states import AttemptState, Judged, judged
from paritrace.attempts.statistics.durations import Ending
from paritrace.attempts.usage import Tokens

Task = tuple[str, str]
FOR_TOKENS = frozenset(AttemptGap) - OF_COST
FOR_COSTS = frozenset(AttemptGap) - OF_USAGE


class JudgedTasks:
    """Outcomes under one evaluator, by task; attempts that another one stands in for are not among them."""

    def __init__(self, evaluator: Evaluator | None) -> None:
        self.evaluator = evaluator
        self.states: Counter[str] = Counter()
        self.values: dict[Task, list[float]] = {}
        self.missing: dict[Task, list[str]] = {}  # ids
        self.endings: list[tuple[float, Ending]] = []
        self.num_without_duration = 0
        self.scored = False
        self.num_conflicts = 0

    def add(self, facts: AttemptFacts) -> Judged:
        """Takes one attempt; returns its state."""
        attempt = facts.attempt
        found = judged(attempt, self.evaluator)
        self.states[found.state] += 1
        self.num_conflicts += found.conflict
        task = (attempt.task_id, attempt.task_revision)
        values = self.values.setdefault(task, [])
        if found.value is None:
            self.missing.setdefault(task, []).append(attempt.attempt_id)
        else:
            values.append(found.value)
        self.scored = self.scored or found.state is AttemptState.EVALUATED_SCORE
        self._time(facts, found)
        return found

    def _time(self, facts: AttemptFacts, found: Judged) -> None:
        seconds = facts.attempt.duration_seconds
        if seconds is None:
            self.num_without_duration += 1
            return
        if found.state is AttemptState.EVALUATED_PASS:
            ending = Ending.PASS
        elif facts.attempt.stop.kind is StopKind.TIMEOUT:
            ending = Ending.CENSORED
        else:
            ending = Ending.FAIL
        self.endings.append((seconds, ending))


class Tally:
    """Counts and sums of one configuration."""

    def __init__(self, name: str, *, evaluators: Iterable[Evaluator], repricing: bool) -> None:
        self.name = name
        self.judges = [JudgedTasks(one) for one in evaluators] or [JudgedTasks(None)]
        self.num_planned = self.num_present = self.num_retried = 0
        self.num_outcomes = 0
        self.stops: Counter[str] = Counter()
        self.executions: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.requests_declared = True
        self.tokens = {kind: Summing() for kind in Tokens}
        self.inherited: dict[Tokens, Summing] = {}
        self.repriced = Summing() if repricing else None
        self.fields: dict[str, set[str | None]] = {}
        self.gaps: Counter[str] = Counter()
        self.relations: Counter[Relation] = Counter()
        self.both: Counter[tuple[int, int, bool]] = Counter()
        self.task_seconds, self.union_seconds = Summing(), Summing()
        self.num_invocations = self.num_overlapping = self.num_resources = self.num_not_fitting = 0
        self.num_legacy = self.num_unattributed = 0
        self._costs: dict[PricingBasis, Summing] = {}
        self._seen_costs: dict[PricingBasis, int] = {}
        self.task_costs: dict[PricingBasis, dict[Task, list[float]]] = {}  # amounts that are known, by task
        self._cost_gaps: Counter[AttemptGap] = Counter()

    def add(self, facts: AttemptFacts, *, retried: bool) -> None:
        """Takes one attempt; `retried`: another one stands in for it, so its spend counts and its outcome does not."""
        attempt = facts.attempt
        self.num_planned += 1
        self.num_present += attempt.present
        self.num_retried += retried
        self.stops[attempt.stop.kind] += 1
        self.executions[attempt.execution] += 1
        self.relations[attempt.relation] += 1
        self.gaps.update(facts.gaps)
        self.num_legacy += bool(facts.legacy)
        self.num_unattributed += bool(facts.between)
        self._add_requests(facts)
        self._add_spend(facts)
        self._add_times(facts)
        for name, value in attempt.fields.items():
            self.fields.setdefault(name, set()).add(value)
        if not retried:
            self._judge(facts)

    def _judge(self, facts: AttemptFacts) -> None:
        self.num_outcomes += 1
        values = [judge.add(facts).value for judge in self.judges]
        for first in range(len(values)):
            for second in range(first + 1, len(values)):
                if values[first] is not None and values[second] is not None:
                    self.both[first, second, values[first] == values[second]] += 1

    def _add_requests(self, facts: AttemptFacts) -> None:
        self.requests.update(str(one.state) for one in facts.requests)
        by_itself = facts.attempt.accounting is not None and not facts.requests
        if facts.attempt.present and not by_itself:
            self.requests_declared = self.requests_declared and facts.attempt.requests_complete

    def _add_spend(self, facts: AttemptFacts) -> None:
        noted = {AttemptGap(reason): count for reason, count in facts.gaps.items()}
        for kind, summing in self.tokens.items():
            summing.add(_with(facts.tokens[kind], noted, FOR_TOKENS))
        for kind, figure in facts.inherited.items():
            self.inherited.setdefault(kind, Summing()).add(figure)
        if self.repriced is not None and facts.repriced is not None:
            self.repriced.add(_with(facts.repriced, noted, frozenset(AttemptGap) - {AttemptGap.COST_ABSENT}))
        self._cost_gaps.update(gap for gap in noted if gap in FOR_COSTS)
        for basis, figure in facts.costs.items():
            self._costs.setdefault(basis, Summing()).add(figure)
            self._seen_costs[basis] = self._seen_costs.get(basis, 0) + 1
            if figure.known:
                task = (facts.attempt.task_id, facts.attempt.task_revision)
                self.task_costs.setdefault(basis, {}).setdefault(task, []).append(figure.low)

    def _add_times(self, facts: AttemptFacts) -> None:
        times, attempt = facts.times, facts.attempt
        self.task_seconds.add(_seconds(times.task_seconds))
        self.union_seconds.add(_seconds(times.invocations.union_seconds))
        self.num_invocations += len(times.invocations.seconds)
        self.num_overlapping += times.invocations.num_overlapping
        self.num_resources += len(attempt.resources) + sum(len(one.resources) for one in attempt.requests)
        self.num_not_fitting += bool(times.remarks)

    def costs(self) -> dict[PricingBasis, Summing]:
        """Returns a sum for each basis; an attempt without an amount under a basis is a gap of that sum."""
        for basis, summing in self._costs.items():
            for _ in range(self.num_planned - self._seen_costs[basis]):
                summing.add(unknown(AttemptGap.COST_ABSENT))
            self._seen_costs[basis] = self.num_planned
            for gap, count in self._cost_gaps.items():
                if gap is not AttemptGap.COST_ABSENT:
                    summing.note(gap, count)
        self._cost_gaps.clear()
        return self._costs


def _with(figure: Figure, noted: dict[AttemptGap, int], these: frozenset[AttemptGap]) -> Figure:
    """A figure with the gaps that were noted of its attempt and that concern it."""
    more = [gap for gap in noted if gap in these and gap not in figure.gaps]
    return Figure(figure.low, figure.high, (*figure.gaps, *more)) if more else figure


def _seconds(value: float | None) -> Figure:
    return unknown(AttemptGap.DURATION_ABSENT) if value is None else known(value)
