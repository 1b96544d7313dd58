"""What a policy says: one line at the end of the first screen, never the first (CP-13)."""

from paritrace.compare.policy import PolicyResult, RuleResult, Verdict
from paritrace.compare.result import Comparison
from paritrace.reports.behind import Behind
from paritrace.reports.harmless import shorten
from paritrace.reports.layout import CONTENT, Section
from paritrace.reports.wording import count, listed, module_or_root

NAMES_SHOWN = 3


def section(comparison: Comparison, /) -> Section:
    """Returns the verdict with the rules behind it; nothing without a policy."""
    policy = comparison.policy
    if policy is None:
        return Section(anchor="rules", lines=())
    return Section(anchor="rules", lines=(shorten(_verdict(policy), width=CONTENT),))


def _verdict(policy: PolicyResult) -> str:
    named = f" {policy.name}" if policy.name else ""
    total = count(len(policy.rules), "rule")
    if policy.verdict is Verdict.PASS:
        return f"policy{named}: pass, {total} hold"
    telling = [rule.name for rule in policy.rules if rule.verdict is policy.verdict]
    return f"policy{named}: {policy.verdict.value}, {len(telling)} of {total}: {listed(telling, most=NAMES_SHOWN)}"


def rules(comparison: Comparison, _part: str) -> Behind:
    """Every rule with its verdict, evidence and place (P9)."""
    policy = comparison.policy
    if policy is None:
        return Behind("No policy was given: the verdict is not_evaluated.")
    return Behind(
        f"The policy {policy.name or 'without a name'} (sha256 {policy.sha256}) says: {policy.verdict.value}.",
        facts=tuple(line for rule in policy.rules for line in _told(rule)),
    )


def _told(rule: RuleResult) -> list[str]:
    lines = [f"{rule.number}. {rule.name}: {rule.verdict.value}; {rule.evidence}"]
    place = rule.place
    if place is not None:
        where = [f"rank {place.rank}"]
        if place.step >= 0:
            where += [f"step {place.step}", *([place.phase] if place.phase else [])]
        if place.function:
            where.append(f"{place.function} in {module_or_root(place.module)}")
        where += [place.slot] if place.slot else []
        ids = [
            f"{side}:{number}"
            for side, number in (("baseline", place.baseline_record_id), ("candidate", place.candidate_record_id))
            if number >= 0
        ]
        lines.append(f"   at {', '.join([*where, *ids])}")
    return lines
