"""Rules by which a user lets attempts pass or fail, and what became of them: pure (AT-17).

What is not known is never held against a rule nor for it: where bounds leave both open, it is undetermined.
"""

from collections.abc import Iterable
from typing import Annotated, assert_never

from msgspec import Meta, Struct

from paritrace.attempts.result import AttemptsComparison, Claim, OfConfiguration, PairOf, RuleOutcome, Summary
from paritrace.attempts.statistics.records import Absent, Estimate
from paritrace.correspondence.vocabulary import Verdict
from paritrace.evidence.coverage import CoverageState
from paritrace.statistics.records import Interval

FORMAT = "paritrace-attempts-gate"
VERSION = "1.0"
Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class GateRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What all rules have; `name` is for people."""

    name: str = ""


class PassFraction(GateRule, frozen=True, kw_only=True, tag="pass_fraction"):
    """A configuration passes at least this share of its attempts, whatever the missing ones were."""

    configuration: str
    at_least: Share


class NoRegression(GateRule, frozen=True, kw_only=True, tag="no_regression"):
    """The candidate's mean is not more than `margin` below the baseline's, by the worst-case interval."""

    baseline: str
    candidate: str
    margin: Share = 0.0


class MinimumClaim(GateRule, frozen=True, kw_only=True, tag="claim"):
    """A declared comparison reaches this rung, in favour of `better`."""

    baseline: str
    candidate: str
    better: str
    robust: bool = True  # False: conditional on evaluated attempts is enough


class CompleteEvidence(GateRule, frozen=True, kw_only=True, tag="complete"):
    """Attempts, tokens and costs of every configuration are complete."""


class CostAtMost(GateRule, frozen=True, kw_only=True, tag="cost_at_most"):
    """A configuration's cost is at most this amount, in one currency and under one basis."""

    configuration: str
    amount: Annotated[float, Meta(ge=0.0)]
    currency: str = "USD"


AnyGateRule = PassFraction | NoRegression | MinimumClaim | CompleteEvidence | CostAtMost
KINDS: dict[str, type[GateRule]] = {
    "pass_fraction": PassFraction,
    "no_regression": NoRegression,
    "claim": MinimumClaim,
    "complete": CompleteEvidence,
    "cost_at_most": CostAtMost,
}


class Gate(Struct, frozen=True, forbid_unknown_fields=True):
    """A gate file: TOML with a table `[[rules]]` for each rule."""

    rules: tuple[AnyGateRule, ...]


def gate_of(gate: Gate, summary: Summary, pairs: Iterable[PairOf]) -> tuple[Verdict, tuple[RuleOutcome, ...]]:
    """Returns the verdict and every rule's: fail before undetermined before pass."""
    listed = tuple(pairs)
    outcomes = tuple(_outcome(rule, summary, listed) for rule in gate.rules)
    found = {one.verdict for one in outcomes}
    order = (Verdict.FAIL, Verdict.UNDETERMINED, Verdict.PASS)
    return next((one for one in order if one in found), Verdict.NOT_EVALUATED), outcomes


def comparison_verdict(gate: Gate, comparison: AttemptsComparison) -> tuple[Verdict, tuple[RuleOutcome, ...]]:
    """Returns the verdict over a comparison and its summary."""
    return gate_of(gate, comparison.summary, comparison.pairs)


def _outcome(rule: AnyGateRule, summary: Summary, pairs: tuple[PairOf, ...]) -> RuleOutcome:
    match rule:
        case PassFraction():
            verdict, said = _pass_fraction(rule, _configuration(summary, rule.configuration))
        case NoRegression():
            verdict, said = _no_regression(rule, _pair(pairs, rule.baseline, rule.candidate))
        case MinimumClaim():
            verdict, said = _claim(rule, _pair(pairs, rule.baseline, rule.candidate))
        case CompleteEvidence():
            verdict, said = _complete(summary)
        case CostAtMost():
            verdict, said = _cost(rule, _configuration(summary, rule.configuration))
        case _:
            assert_never(rule)
    kind = next(name for name, known in KINDS.items() if isinstance(rule, known))
    return RuleOutcome(rule.name or kind, verdict, said)


Judgement = tuple[Verdict, str]


def _pass_fraction(rule: PassFraction, one: OfConfiguration | None) -> Judgement:
    if one is None or len(one.evaluators) != 1:
        return Verdict.UNDETERMINED, f"{rule.configuration} has no combined pass fraction"
    fractions = one.evaluators[0].fractions
    if isinstance(fractions, Absent) or fractions.worst_case is None:
        return Verdict.UNDETERMINED, f"{rule.configuration} has no pass fraction"
    low, high = fractions.worst_case
    said = f"{rule.configuration} passes in [{low:.3f}, {high:.3f}] of its attempts; wanted is {rule.at_least:g}"
    if low >= rule.at_least:
        return Verdict.PASS, said
    return (Verdict.FAIL if high < rule.at_least else Verdict.UNDETERMINED), said


def _no_regression(rule: NoRegression, pair: PairOf | None) -> Judgement:
    if pair is None or isinstance(pair.difference, Absent) or isinstance(pair.bounds, Absent):
        return Verdict.UNDETERMINED, f"{rule.baseline} and {rule.candidate} are not compared"
    interval = pair.difference.interval
    if isinstance(interval, Absent):
        return Verdict.UNDETERMINED, "the difference has no interval"
    worst = _worst(pair, interval)
    reach = f"[{worst[0]:+.3f}, {worst[1]:+.3f}]"
    said = f"the candidate is behind by {pair.difference.value:+.3f}, whatever is missing in {reach}"
    if worst[1] <= rule.margin:
        return Verdict.PASS, said
    return (Verdict.FAIL if worst[0] > rule.margin else Verdict.UNDETERMINED), said


def _worst(pair: PairOf, interval: Interval) -> tuple[float, float]:
    """The interval widened to what missing verdicts could make of it."""
    assert not isinstance(pair.bounds, Absent)
    assert isinstance(pair.difference, Estimate)
    down, up = pair.difference.value - interval.low, interval.high - pair.difference.value
    return min(interval.low, pair.bounds[0] - down), max(interval.high, pair.bounds[1] + up)


def _claim(rule: MinimumClaim, pair: PairOf | None) -> Judgement:
    if pair is None:
        return Verdict.UNDETERMINED, f"{rule.baseline} and {rule.candidate} are not compared"
    said = f"the claim is: {pair.claim}" + (", exploratory" if pair.exploratory else "")
    if isinstance(pair.difference, Absent) or pair.exploratory:
        return Verdict.UNDETERMINED, said
    ahead = rule.baseline if pair.difference.value > 0 else rule.candidate
    enough = (Claim.ROBUST,) if rule.robust else (Claim.ROBUST, Claim.CONDITIONAL)
    if pair.claim in enough:
        return (Verdict.PASS if ahead == rule.better else Verdict.FAIL), f"{said}, in favour of {ahead}"
    return Verdict.UNDETERMINED, said


def _complete(summary: Summary) -> Judgement:
    return (Verdict.PASS, "all evidence is there") if summary.complete else (Verdict.FAIL, "evidence is incomplete")


def _cost(rule: CostAtMost, one: OfConfiguration | None) -> Judgement:
    costs = [] if one is None else [cost.sum for cost in one.costs if cost.basis.currency == rule.currency]
    if len(costs) != 1:
        return (
            Verdict.UNDETERMINED,
            f"{rule.configuration} has {len(costs)} cost sums in {rule.currency}, one is needed",
        )
    cost = costs[0]
    said = f"{rule.configuration} costs {'' if cost.state is CoverageState.COMPLETE else '>= '}{cost.low:g}"
    if cost.low > rule.amount:
        return Verdict.FAIL, said
    return (Verdict.PASS if cost.state is CoverageState.COMPLETE else Verdict.UNDETERMINED), said


def _configuration(summary: Summary, name: str) -> OfConfiguration | None:
    return next((one for one in summary.configurations if one.id == name), None)


def _pair(pairs: tuple[PairOf, ...], baseline: str, candidate: str) -> PairOf | None:
    return next((one for one in pairs if (one.baseline, one.candidate) == (baseline, candidate)), None)
