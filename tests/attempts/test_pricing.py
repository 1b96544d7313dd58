"""Costs under their bases, and usage priced again (AT-8, D-15)."""

import pytest
from msgspec.structs import replace

from paritrace.attempts.accounts import AccountingSource, Cost, PricingBasis, PricingKind
from paritrace.attempts.figures import Figure, known, unknown
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.pricing import cost_figures, repriced
from paritrace.attempts.rate_card import RateCard, Rates
from paritrace.attempts.result import CostDifference, Warned
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable
from paritrace.attempts.toml_files import parse_rate_card
from paritrace.errors import RequestError
from paritrace.statistics.records import Interval
from tests.attempts.written import BILLED, WHOLE, accounting, attempt, only, summary, usage

CARD = RateCard(
    format="paritrace-rate-card",
    format_version="1.0",
    id="card",
    version="A",
    verified=True,
    models={"m": Rates(input=3.0, output=15.0, cached_input=0.3, cache_write_input=3.75)},
)


def test_at_8_buckets_are_priced_apart() -> None:
    call = usage(input_tokens=1_000, cached_input_tokens=600, cache_write_input_tokens=100, output_tokens=10)
    expected = (300 * 3.0 + 600 * 0.3 + 100 * 3.75 + 10 * 15.0) / 1e6
    assert repriced(accounting(call), CARD).low == pytest.approx(expected)
    beside = replace(call, input_includes_cache=False, input_tokens=300)
    assert repriced(accounting(beside), CARD).low == pytest.approx(expected)


def test_at_8_an_unknown_convention_gives_both_costs() -> None:
    call = usage(
        input_tokens=1_000,
        cached_input_tokens=600,
        cache_write_input_tokens=0,
        output_tokens=0,
        input_includes_cache=None,
    )
    found = repriced(accounting(call), CARD)
    assert found.gaps == (AttemptGap.CONVENTION_UNKNOWN,)
    assert (found.low, found.high) == pytest.approx(((400 * 3 + 600 * 0.3) / 1e6, (1_000 * 3 + 600 * 0.3) / 1e6))


def test_d_15_a_model_missing_from_the_card_is_never_free() -> None:
    mixed = accounting(*WHOLE.usage, usage(model="m2", input_tokens=10, output_tokens=1))
    found = repriced(mixed, CARD)
    assert found.high is None
    assert AttemptGap.MODEL_UNPRICED in found.gaps
    assert found.low == pytest.approx((100 * 3 + 10 * 15) / 1e6)


def test_d_12_a_bucket_without_a_rate_is_never_free() -> None:
    card = replace(CARD, models={"m": Rates(input=3.0, output=15.0)})
    call = usage(input_tokens=10, cached_input_tokens=5, output_tokens=0)
    assert repriced(accounting(call), card) == unknown(AttemptGap.MODEL_UNPRICED)
    none_cached = usage(input_tokens=10, output_tokens=0)
    assert repriced(accounting(none_cached), card) == known(10 * 3.0 / 1e6)


def test_at_8_what_cannot_be_told_has_no_price() -> None:
    assert repriced(None, CARD) == unknown(AttemptGap.USAGE_ABSENT)
    assert repriced(replace(WHOLE, source=AccountingSource.LEGACY), CARD) == unknown(AttemptGap.LEGACY_ONLY)
    violated = usage(input_tokens=5, cached_input_tokens=50, cache_write_input_tokens=0, output_tokens=0)
    assert AttemptGap.CONVENTION_VIOLATED in repriced(accounting(violated), CARD).gaps


def test_at_8_bases_are_never_in_one_sum() -> None:
    other = PricingBasis(PricingKind.ESTIMATED, "chars/4")
    both = replace(WHOLE, costs=(Cost(1.0, BILLED), Cost(2.0, other), Cost(0.25, BILLED)))
    assert cost_figures(both) == {BILLED: Figure(1.25, 1.25), other: Figure(2.0, 2.0)}


def test_at_20_two_pricing_bases_and_an_unverified_one() -> None:
    unverified = replace(BILLED, verified=False)
    one = attempt("a-t1-1", accounting=replace(WHOLE, costs=(Cost(1.0, BILLED),)))
    two = attempt("a-t2-1", accounting=replace(WHOLE, costs=(Cost(2.0, unverified),)))
    found = summary([one, two])
    sums = [(cost.basis, cost.sum.observed_sum, cost.sum.coverage.observed) for cost in only(found).costs]
    assert sums == [(unverified, 2.0, 1), (BILLED, 1.0, 1)]
    codes = {warning.code for warning in found.warnings}
    assert {Warned.DIFFERENT_PRICING, Warned.UNVERIFIED_PRICING} <= codes


def test_at_8_no_cost_difference_across_bases_or_without_verification() -> None:
    from paritrace import attempts
    from tests.attempts.written import loaded, manifest

    def difference(basis: PricingBasis) -> object:
        theirs = attempt("b-t1-1", accounting=replace(WHOLE, costs=(Cost(1.0, basis),)))
        mine = attempt("a-t1-1", accounting=replace(WHOLE, costs=(Cost(3.0, BILLED),)))
        return attempts.compare(loaded(manifest([mine, theirs]))).pairs[0].cost_difference

    assert difference(replace(BILLED, version="other")) == Absent(NotEstimable.DIFFERENT_PRICING)
    found = difference(BILLED)
    assert isinstance(found, CostDifference)
    assert isinstance(found.estimate, Estimate)
    assert (found.estimate.value, found.estimate.num_tasks) == (2.0, 1)
    assert found.estimate.interval == Absent(NotEstimable.TOO_FEW_TASKS)


def test_at_10_costs_are_compared_on_matched_tasks_alone() -> None:
    from paritrace import attempts
    from tests.attempts.written import loaded, manifest

    amounts = {"a-t1-1": 3.0, "b-t1-1": 1.0, "a-t2-1": 5.0, "b-t2-1": 4.0, "a-t3-1": 100.0}
    listed = [attempt(name, accounting=replace(WHOLE, costs=(Cost(one, BILLED),))) for name, one in amounts.items()]
    found = attempts.compare(loaded(manifest(listed))).pairs[0].cost_difference
    assert isinstance(found, CostDifference)
    assert isinstance(found.estimate, Estimate)
    assert found.estimate.value == 1.5
    assert isinstance(found.estimate.interval, Interval)


def test_at_13_costs_have_intervals_only_where_all_are_known() -> None:
    listed = [
        attempt(f"a-t{number}-1", accounting=replace(WHOLE, costs=(Cost(float(number), BILLED),)))
        for number in range(1, 5)
    ]
    whole = only(summary(listed))
    (per,) = whole.cost_per_pass
    assert isinstance(whole.costs[0].per_attempt, Estimate)
    assert whole.costs[0].per_attempt.value == 2.5
    assert isinstance(per.interval, Interval)
    partly = only(summary([*listed, attempt("a-t5-1", accounting=None)]))
    assert partly.costs[0].per_attempt == Absent(NotEstimable.INCOMPLETE)
    assert [(one.at_least, one.interval) for one in partly.cost_per_pass] == [(True, Absent(NotEstimable.INCOMPLETE))]


def test_at_8_a_rate_card_is_read_strictly() -> None:
    text = (
        b'format="paritrace-rate-card"\nformat_version="1.0"\nid="c"\nversion="1"\n[models.m]\ninput=1.0\noutput=2.0\n'
    )
    assert parse_rate_card(text, name="card.toml").models["m"].output == 2.0
    for broken in (text + b"cache=1\n", text.replace(b"1.0\n", b"-1.0\n"), b"x", text.replace(b"1.0\n", b"inf\n")):
        with pytest.raises(RequestError) as refused:
            parse_rate_card(broken, name="card.toml")
        assert refused.value.code == "bad_rate_card"
        assert refused.value.details
