"""Verdicts apart from how an attempt stopped; fractions with their denominators; who judged (AT-4, AT-10, AT-12)."""

import pytest
from msgspec.structs import replace

from paritrace import attempts
from paritrace.attempts.manifest import (
    Configuration,
    Evaluation,
    Evaluator,
    Execution,
    Relation,
    Stop,
    StopKind,
    VerdictKind,
)
from paritrace.attempts.matching import matching
from paritrace.attempts.result import Claim, Fractions, Warned
from paritrace.attempts.statistics.pass_at_k import PassAtK
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable
from paritrace.correspondence.vocabulary import Agreement
from paritrace.statistics.records import Interval
from tests.attempts.written import FAIL, PASS, UNIT_TESTS, attempt, loaded, manifest, only, summary

JUDGE = Evaluator("judge", "2")


def fractions(found: object) -> Fractions:
    assert isinstance(found, Fractions)
    return found


def test_d_01_not_evaluated_is_neither_failed_nor_left_out() -> None:
    verdicts = [PASS] * 6 + [FAIL] * 11 + [None] * 63
    found = only(summary([attempt(f"a-t{number}-1", verdict) for number, verdict in enumerate(verdicts)]))
    assert found.evaluators[0].states == {"evaluated_fail": 11, "evaluated_pass": 6, "not_evaluated": 63}
    got = fractions(found.evaluators[0].fractions)
    assert (got.passes, got.num_evaluated, got.num_attempts) == (6, 17, 80)
    assert got.evaluated_only == pytest.approx(6 / 17)
    assert got.missing_as_failed == pytest.approx(0.075)
    assert got.worst_case == pytest.approx((0.075, 69 / 80))


def test_d_02_a_timed_out_attempt_may_have_passed() -> None:
    late = attempt("a-t1-1", PASS, stop=Stop(StopKind.TIMEOUT, "agent_timeout"), execution=Execution.FAILED)
    found = only(summary([late]))
    assert found.evaluators[0].states == {"evaluated_pass": 1}
    assert found.stops == {"timeout": 1}
    assert found.executions == {"failed": 1}


def test_d_07_an_errored_attempt_stays_in_a_denominator() -> None:
    verdicts = [PASS] * 2 + [FAIL] * 4
    judged = [attempt(f"a-t{number}-1", verdict) for number, verdict in enumerate(verdicts)]
    errors = [attempt(f"a-e{number}-1", None, execution=Execution.FAILED) for number in range(2)]
    got = fractions(only(summary([*judged, *errors])).evaluators[0].fractions)
    assert got.evaluated_only == pytest.approx(1 / 3)
    assert got.missing_as_failed == 0.25


def test_d_08_a_reward_that_its_tool_leaves_out_is_a_column_and_counts_as_missing() -> None:
    written = (Evaluation(UNIT_TESTS, FAIL, counts=False),)
    lost = attempt("a-t1-1", evaluations=written, execution=Execution.FAILED, stop=Stop(StopKind.ERROR, "ApiError"))
    found = summary([lost, attempt("a-t2-1", PASS)])
    assert only(found).evaluators[0].states == {"evaluated_pass": 1, "execution_failed": 1}
    assert found.details is not None
    assert found.details[0].written_verdicts == ("unit-tests 1: fail, left out by its own tool",)
    assert fractions(only(found).evaluators[0].fractions).worst_case == (0.5, 1.0)


def test_at_4_an_evaluator_that_failed_said_nothing_of_the_attempt() -> None:
    found = only(summary([attempt("a-t1-1", VerdictKind.ERROR), attempt("a-t2-1", FAIL)]))
    assert found.evaluators[0].states == {"evaluated_fail": 1, "evaluator_error": 1}
    assert fractions(found.evaluators[0].fractions).num_evaluated == 1


def test_at_4_one_evaluator_that_says_two_things_is_not_chosen_from() -> None:
    both = (Evaluation(UNIT_TESTS, PASS), Evaluation(UNIT_TESTS, FAIL))
    found = only(summary([attempt("a-t1-1", evaluations=both), attempt("a-t2-1", evaluations=(both[0], both[0]))]))
    assert found.evaluators[0].states == {"evaluated_pass": 1, "not_evaluated": 1}


def test_at_20_two_evaluators_in_one_configuration() -> None:
    """D-20: another judge moves the same answers; no combined fraction, a matrix instead."""
    one = [
        attempt(f"a-t{number}-1", evaluations=(Evaluation(UNIT_TESTS, PASS), Evaluation(JUDGE, verdict)))
        for number, verdict in enumerate([PASS, PASS, FAIL])
    ]
    found = summary([*one, attempt("a-t9-1", evaluations=(Evaluation(JUDGE, FAIL),))])
    mixed = only(found)
    assert not mixed.combined
    assert mixed.cost_per_pass == ()
    assert [(cell.first, cell.second, cell.num_both, cell.num_agree) for cell in mixed.matrix] == [
        (JUDGE, UNIT_TESTS, 3, 2)
    ]
    by_judge = {judge.evaluator: fractions(judge.fractions).evaluated_only for judge in mixed.evaluators}
    assert by_judge == {JUDGE: 0.5, UNIT_TESTS: 1.0}
    assert Warned.MIXED_EVALUATORS in {warning.code for warning in found.warnings}


@pytest.mark.parametrize("other", [JUDGE, Evaluator("unit-tests", "2"), Evaluator("unit-tests")])
def test_at_20_two_evaluators_across_configurations(other: Evaluator) -> None:
    theirs = attempt("b-t1-1", evaluations=(Evaluation(other, PASS),))
    found = attempts.compare(loaded(manifest([attempt("a-t1-1"), theirs])))
    assert found.pairs[0].claim is Claim.NOT_COMPARABLE
    assert Warned.DIFFERENT_EVALUATORS in {warning.code for warning in found.pairs[0].warnings}
    assert isinstance(found.pairs[0].difference, Absent)


def test_d_19_what_differs_inside_a_configuration_is_listed_and_null_is_not_recorded() -> None:
    models = ["claude-sonnet-4-0", "claude-sonnet-4-20250514", None]
    listed = [attempt(f"a-t{n}-1", fields={"model": model, "harness": "0.2"}) for n, model in enumerate(models)]
    found = summary(listed)
    assert only(found).differing_fields == ("model",)
    assert only(found).fields["model"] == ("claude-sonnet-4-0", "claude-sonnet-4-20250514", None)
    (warning,) = [one for one in found.warnings if one.code is Warned.FIELDS_DIFFER]
    assert "not recorded" in warning.sentence


def test_at_10_all_four_lists_hold_every_task() -> None:
    mine = {("t1", "1"), ("t2", "1"), ("t3", "1"), ("t4", "1")}
    theirs = {("t1", "1"), ("t2", "2"), ("t5", "1")}
    found = matching(mine, theirs)
    assert found.matched == (("t1", "1"),)
    assert found.revision_differs == (("t2", ("1",), ("2",)),)
    assert found.baseline_only == (("t3", "1"), ("t4", "1"))
    assert found.candidate_only == (("t5", "1"),)


def test_at_10_fields_are_compared_in_the_words_of_every_comparison() -> None:
    mine = attempt("a-t1-1", fields={"model": "m", "timeout": "1", "seed": None})
    theirs = attempt("b-t1-1", fields={"model": "m", "timeout": "2", "seed": "3"})
    found = attempts.compare(loaded(manifest([mine, theirs]))).pairs[0].fields
    assert [(one.name, one.agreement) for one in found] == [
        ("model", Agreement.EQUAL),
        ("seed", Agreement.NOT_COMPARABLE),
        ("timeout", Agreement.DIFFERENT),
    ]


def test_at_13_pass_at_k_only_of_independent_attempts() -> None:
    tries = [attempt(f"a-t1-{number}", verdict) for number, verdict in enumerate([PASS, FAIL, FAIL])]
    found = only(summary(tries)).evaluators[0].pass_at_k
    assert not isinstance(found, Absent)
    assert found[1].pass_at_k == pytest.approx(2 / 3)
    few = Absent(NotEstimable.TOO_FEW_TASKS)
    assert found[1] == PassAtK(
        2, found[1].pass_at_k, 0.0, 1, 1, few, Interval(0.0, 0.975, 0.95, "Clopper-Pearson exact interval, n = 1")
    )
    for relation in (Relation.UNKNOWN, Relation.RETRY_ON_FAILURE):
        configuration = Configuration("a", attempts_complete=True, relation=relation)
        got = only(summary(tries, configurations=(configuration,))).evaluators[0].pass_at_k
        assert isinstance(got, Absent)
        assert got.gap is NotEstimable.NOT_INDEPENDENT


def test_d_16_a_retried_attempt_spends_and_has_no_outcome() -> None:
    first = attempt("a-t1-1", FAIL)
    second = attempt("a-t1-2", PASS, retry_of="a-t1-1", relation=Relation.RETRY_ON_FAILURE)
    found = only(summary([first, second]))
    assert found.num_retried == 1
    assert fractions(found.evaluators[0].fractions).num_attempts == 1
    assert found.tokens["input_tokens"].observed_sum == 200


def test_at_13_cost_per_pass_is_at_least_unless_all_is_there() -> None:
    whole = only(summary([attempt("a-t1-1", PASS), attempt("a-t2-1", FAIL)]))
    assert [(one.amount, one.at_least) for one in whole.cost_per_pass] == [(1.0, False)]
    lost = only(summary([attempt("a-t1-1", PASS), attempt("a-t2-1", None)]))
    assert [(one.amount, one.at_least) for one in lost.cost_per_pass] == [(0.5, True)]


def test_at_13_several_configurations_are_adjusted_by_holm() -> None:
    listed = []
    for name, passed in (("a", 10), ("b", 10), ("c", 3)):
        listed += [attempt(f"{name}-t{n}-1", PASS if n < passed else FAIL) for n in range(12)]
    found = attempts.compare(loaded(manifest(listed)))
    assert found.num_comparisons == 3
    by_pair = {(pair.baseline, pair.candidate): pair for pair in found.pairs}
    tests = {test.name: test for test in by_pair["a", "c"].tests}
    assert tests["McNemar exact test"].p_value == pytest.approx(2 * 0.5**7)
    assert tests["McNemar exact test"].p_holm == pytest.approx(3 * 2 * 0.5**7)
    assert by_pair["a", "b"].claim is Claim.UNDETERMINED


def test_at_11_scores_without_a_declared_range_have_no_worst_case() -> None:
    listed = []
    for name, score in (("a", 0.5), ("b", 0.25)):
        for task in range(4):
            one = (Evaluation(JUDGE, VerdictKind.SCORE, score + task / 100),)
            listed.append(attempt(f"{name}-t{task}-1", evaluations=one))
    found = attempts.compare(loaded(manifest(listed))).pairs[0]
    assert isinstance(found.difference, Estimate)
    assert found.difference.value == pytest.approx(0.25)
    assert isinstance(found.bounds, Absent)
    assert found.claim is Claim.UNDETERMINED
    ranged = attempts.compare(loaded(manifest(listed, score_ranges={"judge": (0.0, 1.0)}))).pairs[0]
    assert ranged.bounds == pytest.approx((0.25, 0.25))


def test_at_14_looks_beyond_the_plan_leave_the_anytime_interval_alone() -> None:
    from paritrace.attempts.manifest import Look, Primary

    listed = [attempt(f"a-t{n}-1", PASS) for n in range(12)] + [
        attempt(f"b-t{n}-1", PASS if n == 0 else FAIL) for n in range(12)
    ]
    primary = Primary("a", "b")
    planned = attempts.compare(loaded(manifest(listed, primary=primary, looks=(Look(12, True),)))).pairs[0]
    assert (planned.claim, planned.exploratory) == (Claim.ROBUST, False)
    extended = attempts.compare(
        loaded(manifest(listed, primary=primary, looks=(Look(6, True), Look(12, False))))
    ).pairs[0]
    assert extended.claim is Claim.UNDETERMINED
    assert any("anytime" in reason for reason in extended.claim_reasons)


def test_at_14_lost_attempts_are_named() -> None:
    listed = [
        attempt("a-t1-1"),
        attempt("a-t2-1", None),
        attempt("b-t1-1"),
        attempt("b-t2-1", FAIL),
        attempt("b-t9-1", None),
    ]
    found = attempts.compare(loaded(manifest(listed))).pairs[0]
    assert found.lost == {"a": ("a-t2-1",), "b": ()}
    assert found.matching.candidate_only == (("t9", "1"),)
    assert isinstance(found.difference, Estimate)
    assert found.difference.remarks == ("1 matched tasks have no verdict on one side and are left out",)
    assert found.exploratory


def test_at_15_a_runs_own_total_shows_what_no_attempt_accounts_for() -> None:
    from paritrace.attempts.accounts import RunTotal
    from tests.attempts.written import WHOLE, usage

    total = RunTotal("log", replace(WHOLE, usage=(usage(input_tokens=400, output_tokens=30),), costs=()))
    configuration = Configuration("a", attempts_complete=True, totals=(total,))
    listed = [attempt(f"a-t{number}-1") for number in range(3)]
    found = summary(listed, configurations=(configuration,))
    left = {one.figure: one.unattributed for one in only(found).reconciled}
    assert left["input_tokens"] == 100
    assert left["output_tokens"] == 0
    assert Warned.UNATTRIBUTED in {warning.code for warning in found.warnings}


def test_at_9_of_nothing_not_all_evidence_is_there() -> None:
    assert not summary([], configurations=()).complete
