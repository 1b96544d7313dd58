"""A result as test cases: what passes, fails, is undetermined or skipped, as the exit status counts it (SU-7): pure."""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from paritrace.compare.checks_result import Checked, Invariant, Outcome
from paritrace.compare.policy import RuleResult, Verdict
from paritrace.compare.result import AROUND_RUNGS, LADDER, Comparison, Finding, Mark
from paritrace.evidence.spans import ranges
from paritrace.reports.formats import UNLIMITED, Allowed
from paritrace.reports.headline import statement
from paritrace.reports.wording import REASONS, count, source_place


class State(StrEnum):
    """What became of a case; the value of one that is not passed or skipped is the failure's type."""

    PASSED = "passed"
    SKIPPED = "skipped"
    DIFFERENT = "different"
    INSIDE = "inside-envelope"
    FAILED = "failed"
    UNDETERMINED = "undetermined"
    INCOMPLETE = "incomplete"


class Case(Struct, frozen=True):
    """One test case. `text` are further lines for a person."""

    suite: str
    name: str
    state: State
    message: str = ""
    text: tuple[str, ...] = ()


RUNGS = {
    Mark.AGREES: (State.PASSED, "bits agree"),
    Mark.INSIDE: (State.INSIDE, "inside the envelope"),
    Mark.BEYOND: (State.DIFFERENT, "differs"),
    Mark.UNDETERMINED: (State.UNDETERMINED, "undetermined or not seen"),
    Mark.NOT_REACHED: (State.SKIPPED, "not reached"),
}
OUTCOMES = {
    Outcome.PASS: State.PASSED,
    Outcome.FAIL: State.FAILED,
    Outcome.NOT_CHECKABLE: State.UNDETERMINED,
    Outcome.NOT_APPLICABLE: State.SKIPPED,
}
VERDICTS = {
    Verdict.PASS: State.PASSED,
    Verdict.FAIL: State.FAILED,
    Verdict.UNDETERMINED: State.UNDETERMINED,
}


def cases_of_comparison(comparison: Comparison, /, *, allowed: Allowed) -> list[Case]:
    """Returns rungs, findings and coverage as cases; where a policy was given its rules alone decide."""
    found = [*_rungs(comparison), *_findings(comparison), *_coverage(comparison)]
    if comparison.policy is not None:
        return [*map(_rule, comparison.policy.rules), *map(_told_only, found)]
    undetermined = _undetermined(comparison)
    return [_as_allowed(case, allowed=allowed, undetermined=undetermined) for case in found]


def cases_of_check(checked: Checked, /, *, allowed: Allowed) -> list[Case]:
    """Returns every invariant as a case."""
    unknown = checked.counts.get(Outcome.NOT_CHECKABLE, 0)
    return [_as_allowed(_invariant(one), allowed=allowed, undetermined=unknown) for one in checked.invariants]


def _as_allowed(case: Case, *, allowed: Allowed, undetermined: int) -> Case:
    """What the user accepts is no failure, and still told."""
    accepted = allowed.undetermined == UNLIMITED or undetermined <= allowed.undetermined > 0
    if (case.state is State.UNDETERMINED and accepted) or (case.state is State.INSIDE and allowed.inside_envelope):
        return _told_only(case)
    return case


def _told_only(case: Case) -> Case:
    if case.state in (State.PASSED, State.SKIPPED):
        return case
    return Case(case.suite, case.name, State.PASSED, text=(f"{case.state.value}: {case.message}", *case.text))


def _rungs(comparison: Comparison) -> Iterator[Case]:
    for rung in LADDER:
        state, message = RUNGS[comparison.ladder.get(rung, Mark.UNDETERMINED)]
        case = Case("ladder", rung, state, f"{rung}: {message}", (f"step {comparison.ladder_step}",))
        # what changed around the runs is a cause, and no difference of what they computed
        yield _told_only(case) if rung in AROUND_RUNGS and state is State.DIFFERENT else case


def _findings(comparison: Comparison) -> Iterator[Case]:
    if not comparison.findings:
        _, sentence, strength = statement(comparison)
        state = State.DIFFERENT if comparison.counts.different or comparison.outside else State.PASSED
        yield Case("findings", "none named", state, sentence, (sentence, strength))
    for finding in comparison.findings:
        place = finding.place
        where = (
            f"step {place.step}, {place.phase}, rank {ranges(finding.ranks or (place.rank,))}, {source_place(place)}"
        )
        state = State.INSIDE if is_inside(finding) else State.DIFFERENT
        yield Case("findings", finding.id, state, finding.sentence, (finding.strength, where))


def is_inside(finding: Finding, /) -> bool:
    """Whether an envelope explains a finding; one that it does not speak of is not inside."""
    return finding.ratio is not None and finding.reached is not None and finding.ratio <= finding.reached


def _undetermined(comparison: Comparison) -> int:
    counts = comparison.counts
    return counts.undetermined_baseline + counts.undetermined_candidate + counts.incomparable


def _coverage(comparison: Comparison) -> Iterator[Case]:
    reasons = tuple(
        f"{side}: {number:,} {reason} ({REASONS.get(reason, reason)})"  # type: ignore[call-overload]
        for side, found in sorted(comparison.undetermined_by_reason.items())
        for reason, number in sorted(found.items(), key=lambda item: (-item[1], item[0]))
    )
    number = _undetermined(comparison)
    state = State.UNDETERMINED if number else State.PASSED
    yield Case("coverage", "undetermined calls", state, f"{count(number, 'call')} undetermined", reasons)
    if comparison.ranks_missing or not comparison.ranks_compared:
        message = f"on one side only: rank {ranges(comparison.ranks_missing) or 'none'}"
        yield Case("coverage", "ranks", State.INCOMPLETE, message)
    else:
        yield Case("coverage", "ranks", State.PASSED)
    for side, coverage in comparison.coverage.items():
        state = State.PASSED if coverage.complete else State.INCOMPLETE
        gaps = tuple(f"{reason}: {number:,}" for reason, number in sorted(coverage.gaps.items()))
        message = "" if coverage.complete else f"the {side}'s evidence is not known to be complete ({coverage.status})"
        yield Case("coverage", side, state, message, gaps)


def _rule(rule: RuleResult) -> Case:
    return Case("policy", f"{rule.number}. {rule.name}", VERDICTS[rule.verdict], rule.evidence)


def _invariant(invariant: Invariant) -> Case:
    evidence = invariant.evidence
    rank = f" (rank {invariant.rank})" if invariant.rank >= 0 else ""
    where = (f"{evidence.file}:{evidence.line}",) if evidence.file else ()
    names = (f"{evidence.total:,}: {', '.join(evidence.names[:20])}",) if evidence.names else ()
    message = evidence.reason or f"not so: {invariant.name}"
    text = (invariant.name, *evidence.facts[:20], *names, *where)
    return Case(invariant.id.partition(".")[0], f"{invariant.id}{rank}", OUTCOMES[invariant.status], message, text)
