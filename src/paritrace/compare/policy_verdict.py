"""The verdict of a policy over a whole comparison, rule by rule, with evidence and place (CP-13, A-21)."""

from collections.abc import Sequence

from msgspec.structs import replace

from paritrace.compare.policy import (
    AnyRule,
    CollectivesAgree,
    Complete,
    InsideEnvelope,
    LoadedPolicy,
    PolicyResult,
    RanksCompared,
    ResumeAgrees,
    RowsAgree,
    RulePlace,
    RuleResult,
    Rungs,
    StepValue,
    Tally,
    Threshold,
    UndeterminedShare,
    Verdict,
)
from paritrace.compare.policy_joined import resume_agrees, row_place, rows_agree
from paritrace.compare.policy_ranks import joined
from paritrace.compare.result import AROUND_RUNGS, Comparison, Mark

PASS, FAIL, UNDETERMINED = Verdict.PASS, Verdict.FAIL, Verdict.UNDETERMINED
JOINED = (InsideEnvelope, RowsAgree, ResumeAgrees)
Judged = tuple[Verdict, str, RulePlace | None]


def with_verdict(comparison: Comparison, loaded: LoadedPolicy | None, ranks: Sequence[Sequence[Tally]]) -> Comparison:
    """The comparison with what the user's rules say of it; as it is where there are none."""
    if loaded is None:
        return comparison
    found = policy_result(comparison, loaded, ranks)
    return replace(comparison, verdict=found.verdict.value, policy=found)


def policy_result(comparison: Comparison, loaded: LoadedPolicy, ranks: Sequence[Sequence[Tally]]) -> PolicyResult:
    """Judge every rule; `ranks` has for each rank one tally for each rule."""
    found = [
        _judged(number, rule, comparison, [rank[number] for rank in ranks])
        for number, rule in enumerate(loaded.policy.rules)
    ]
    return PolicyResult(
        name=loaded.policy.name,
        sha256=loaded.sha256,
        verdict=worst([rule.verdict for rule in found]),
        rules=tuple(found),
    )


def with_joined(comparison: Comparison, loaded: LoadedPolicy | None) -> Comparison:
    """The comparison with the rules judged again that speak of what is joined to it last: rows of tokens, a resume."""
    if loaded is None or comparison.policy is None:
        return comparison
    rules = tuple(
        _judged(number, rule, comparison, []) if isinstance(rule, JOINED) else before
        for number, (rule, before) in enumerate(zip(loaded.policy.rules, comparison.policy.rules, strict=True))
    )
    verdict = worst([rule.verdict for rule in rules])
    found = replace(comparison.policy, verdict=verdict, rules=rules)
    return replace(comparison, verdict=verdict.value, policy=found)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """A failure outranks a doubt, a doubt outranks a pass."""
    return next((verdict for verdict in (FAIL, UNDETERMINED) if verdict in verdicts), PASS)


def _judged(number: int, rule: AnyRule, comparison: Comparison, ranks: Sequence[Tally]) -> RuleResult:
    tally = joined(ranks)
    match rule:
        case InsideEnvelope():
            verdict, evidence, place = _envelope(comparison)
        case Rungs():
            verdict, evidence, place = _rungs(comparison, rule)
        case CollectivesAgree():
            verdict, evidence, place = _collectives(comparison, tally)
        case RanksCompared():
            verdict, evidence, place = _ranks(comparison, max((rank.checked for rank in ranks), default=0))
            tally = Tally(checked=len(comparison.ranks_compared))
        case Complete():
            verdict, evidence, place = _complete(comparison)
        case RowsAgree():
            verdict, evidence, place = rows_agree(comparison, rule)
        case ResumeAgrees():
            verdict, evidence, place = resume_agrees(comparison, rule)
        case _:
            verdict, evidence, place = _of_tally(rule, tally)
    kind = str(rule.__struct_config__.tag)
    return RuleResult(
        number=number + 1,
        name=rule.name or kind,
        kind=kind,
        verdict=verdict,
        evidence=evidence,
        checked=tally.checked,
        broken=tally.broken,
        unknown=tally.unknown,
        worst=tally.worst,
        place=place,
    )


def _of_tally(rule: AnyRule, tally: Tally) -> Judged:
    """What breaks a rule fails it; what cannot be told, or nothing at all to check, leaves it undetermined."""
    if not tally.checked:
        left_out = f"; {tally.unsampled:,} without a summary on both sides" if tally.unsampled else ""
        return UNDETERMINED, f"nothing that was recorded is like this{left_out}", None
    verdict = FAIL if tally.broken else UNDETERMINED if tally.unknown else PASS
    return verdict, _evidence(rule, tally), None if verdict is PASS else tally.place


def _evidence(rule: AnyRule, tally: Tally) -> str:
    parts = [f"{tally.checked:,} checked, {tally.broken:,} break it, {tally.unknown:,} cannot be told"]
    match rule:
        case UndeterminedShare(most=most):
            parts = [f"largest share {tally.worst:.4g} of {most:.4g} allowed, {tally.checked:,} calls of both runs"]
        case Threshold(figure=figure, most=most) if tally.worst is not None:
            parts.append(f"largest {figure.value} {tally.worst:.3g} of {most:.3g} allowed")
        case StepValue() if tally.worst is not None:
            parts.append(f"largest difference {tally.worst:.3g}")
        case _:
            pass
    if tally.unsampled:
        parts.append(f"{tally.unsampled:,} without a summary on both sides are not counted")
    return "; ".join([*parts, *tally.facts])


def _envelope(comparison: Comparison) -> Judged:
    """What is judged of calls, figures and rows of tokens."""
    verdict, told, place = _of_calls(comparison)
    rows = comparison.token_rows
    if rows is None or not (rows.judged or rows.differ):
        return verdict, told, place
    if not rows.judged:
        return worst([verdict, UNDETERMINED]), f"{told}; no row of tokens was judged: {rows.not_judged}", place
    told = f"{told}; {rows.beyond:,} of {rows.judged:,} judged rows of tokens beyond"
    if not rows.beyond:
        return verdict, told, place
    return FAIL, told, place or (None if rows.first_beyond is None else row_place(rows.first_beyond))


def _of_calls(comparison: Comparison) -> Judged:
    used = comparison.envelope
    if used is None:
        return UNDETERMINED, "there is no envelope: no draws of the baseline (paritrace run --perturb 8)", None
    if used.why or not used.judged:
        return UNDETERMINED, f"nothing was judged: {used.why or 'no output has a spread to be judged by'}", None
    rungs = [rung for rung, mark in comparison.ladder.items() if mark is Mark.BEYOND and rung not in AROUND_RUNGS]
    told = f"{used.beyond:,} of {used.judged:,} judged outputs beyond; {used.num_draws} {used.kind}"
    if used.beyond or rungs:
        beyond = f"; beyond on the ladder: {', '.join(rungs)}" if rungs else ""
        return FAIL, told + beyond, _first_beyond(comparison)
    return PASS, told, None


def _first_beyond(comparison: Comparison) -> RulePlace | None:
    for finding in comparison.findings:
        place = finding.place
        if finding.ratio is None or finding.reached is None or finding.ratio > finding.reached:
            return RulePlace(
                place.rank,
                place.step,
                place.microbatch,
                phase=place.phase,
                module=place.module,
                function=place.function,
                slot=place.slot,
                baseline_record_id=place.baseline_record_id,
                candidate_record_id=place.candidate_record_id,
            )
    return None


def _rungs(comparison: Comparison, rule: Rungs) -> Judged:
    marks = {rung: comparison.ladder.get(rung, Mark.UNDETERMINED) for rung in rule.rungs}
    good = {Mark.AGREES} if rule.at_least == Mark.AGREES.value else {Mark.AGREES, Mark.INSIDE}
    bad = {Mark.BEYOND, Mark.INSIDE} - good
    told = f"step {comparison.ladder_step}: {', '.join(f'{rung} {mark.value}' for rung, mark in marks.items())}"
    if bad & set(marks.values()):
        return FAIL, told, None
    return (PASS if set(marks.values()) <= good else UNDETERMINED), told, None


def _collectives(comparison: Comparison, tally: Tally) -> Judged:
    whole = [found for found in comparison.collectives if found.complete]
    if whole:
        return FAIL, f"{len(whole):,} statements, the first: {whole[0].sentence}", None
    if comparison.collectives:
        return UNDETERMINED, "some stand on one side, whose recording is not whole", None
    if not tally.checked:
        return UNDETERMINED, "no collective was recorded and paired on both sides", None
    return PASS, f"{tally.checked:,} pairs of collectives, none of them unlike", None


def _ranks(comparison: Comparison, world_size: int) -> Judged:
    folds = comparison.folds
    if folds is not None:
        missing = [set(range(size)) - set(ranks) for size, ranks in zip(folds.world_sizes, folds.ranks, strict=True)]
        told = (
            f"{len(folds.ranks[0])} of {folds.world_sizes[0]} and {len(folds.ranks[1])} of {folds.world_sizes[1]} ranks"
        )
        return (FAIL if any(missing) else PASS), f"{told}, by fold", None
    expected = {*range(world_size), *comparison.ranks_missing, *comparison.ranks_compared}
    told = f"{len(comparison.ranks_compared)} of {max(len(expected), 1)} ranks"
    lacking = sorted(expected - set(comparison.ranks_compared)) if expected else [0]
    if lacking:
        return FAIL, f"{told}; not compared: {', '.join(map(str, lacking[:8]))}", RulePlace(lacking[0], -1)
    return PASS, told, None


def _complete(comparison: Comparison) -> Judged:
    lacking = [side for side, coverage in comparison.coverage.items() if not coverage.complete]
    if lacking or comparison.ranks_missing or not comparison.ranks_compared:
        return UNDETERMINED, f"not complete: {', '.join(lacking) or 'ranks are missing'}", None
    return PASS, "declared steps were seen on both sides and nothing was lost", None
