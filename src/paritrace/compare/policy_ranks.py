"""What one rank gives to each rule of a policy: one table of rules (CP-13)."""

from collections.abc import Sequence

from paritrace.compare.policy import (
    AnyRule,
    BitsAgree,
    CollectivesAgree,
    Complete,
    ConfigValue,
    InsideEnvelope,
    Policy,
    RanksCompared,
    ResumeAgrees,
    RowsAgree,
    Rungs,
    StatesAgree,
    StepValue,
    Tally,
    Threshold,
    UndeterminedShare,
)
from paritrace.compare.policy_calls import bits_agree, undetermined_share
from paritrace.compare.policy_figures import config_value, states_agree, step_value
from paritrace.compare.policy_thresholds import threshold
from paritrace.compare.ranks import RankComparison

FACTS_KEPT = 4


def tallies(of: RankComparison, policy: Policy | None) -> tuple[Tally, ...]:
    """One for each rule of the policy; empty of rules about the whole result."""
    return () if policy is None else tuple(_tally(of, rule) for rule in policy.rules)


def _tally(of: RankComparison, rule: AnyRule) -> Tally:
    match rule:
        case UndeterminedShare():
            return undetermined_share(of, rule)
        case BitsAgree():
            return bits_agree(of, rule)
        case Threshold():
            return threshold(of, rule)
        case StatesAgree():
            return states_agree(of, rule)
        case StepValue():
            return step_value(of, rule)
        case ConfigValue():
            return config_value(of, rule)
        case CollectivesAgree():
            return Tally(checked=sum(of.sides.pairing.partner_a[i] >= 0 for i in of.sides.baseline.collectives))
        case RanksCompared():
            sides = (of.sides.baseline, of.sides.candidate)
            return Tally(checked=max(side.recorded.session.row.world_size for side in sides))
        case InsideEnvelope() | Rungs() | Complete() | RowsAgree() | ResumeAgrees():
            return Tally()


def joined(found: Sequence[Tally]) -> Tally:
    """One tally of all ranks."""
    broken = [tally for tally in found if tally.broken]
    telling = broken or [tally for tally in found if tally.unknown]
    figures = [tally.worst for tally in found if tally.worst is not None]
    return Tally(
        checked=sum(tally.checked for tally in found),
        broken=sum(tally.broken for tally in found),
        unknown=sum(tally.unknown for tally in found),
        worst=max(figures, default=None),
        unsampled=sum(tally.unsampled for tally in found),
        place=next((tally.place for tally in telling if tally.place is not None), None),
        facts=tuple(dict.fromkeys(fact for tally in found for fact in tally.facts))[:FACTS_KEPT],
    )
