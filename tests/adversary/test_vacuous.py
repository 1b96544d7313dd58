"""What holds of nothing is told as that, and a run that was cut off is not said to have observed all (CP-25, P1)."""

from paritrace.compare.checks_result import Outcome, RankCoverage
from paritrace.compare.checks_rules_coverage import coverage_invariants
from paritrace.compare.checks_rules_parameters import parameter_invariants
from paritrace.compare.checks_rules_values import value_invariants
from paritrace.evidence.calls import Row
from tests.compare import check_records as r


def names(*records: Row) -> dict[str, str]:
    facts = r.facts_of([*r.training(), *records])
    found = [*parameter_invariants(facts, rank=0), *value_invariants(facts, rank=0)]
    return {invariant.id: invariant.name for invariant in found}


def test_no_recomputed_call_is_not_agreement_of_recomputed_calls() -> None:
    told = names()
    assert told["recomputation.equals_original"] == "no recomputed call was recorded"
    assert told["parameters.tied"] == "no parameters are declared tied"
    with_one = names(r.call(905, bits="1" * 16), r.recompute(909, link=905, bits="1" * 16))
    assert with_one["recomputation.equals_original"] == "recomputed calls agree with their originals"


def observed(*, has_receipt: bool) -> Outcome:
    coverage = RankCoverage(
        rank=0,
        session_id="s",
        status="completed" if has_receipt else "interrupted; cause unknown",
        steps_seen=(0,),
        expected_steps=None,
        levels=("digest",),
        calls=3,
        states=9,
        gaps={},
        losses=0,
        bytes_lost=0,
        has_receipt=has_receipt,
        not_captured=(),
    )
    (found,) = [one for one in coverage_invariants(coverage) if one.id == "evidence.all_observed"]
    return found.status


def test_a_session_that_was_cut_off_is_not_said_to_have_observed_all() -> None:
    assert observed(has_receipt=True) is Outcome.PASS
    assert observed(has_receipt=False) is Outcome.NOT_CHECKABLE
