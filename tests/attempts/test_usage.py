"""Token counters under their conventions, streams and copies (AT-6, AT-7; D-03, D-10 to D-13, D-16)."""

from itertools import permutations

import pytest
from msgspec.structs import replace

from paritrace.attempts.accounts import Accounting, AccountingSource, Counting, Usage
from paritrace.attempts.figures import Figure, known, unknown
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.usage import Tokens, calls_of, inclusive_input, inclusive_output, token_figures
from tests.attempts.written import WHOLE, accounting, usage


def test_d_12_the_first_record_rules_the_subset_convention_out() -> None:
    call = Usage(input_tokens=5, cached_input_tokens=128_955, cache_write_input_tokens=1_253)
    assert inclusive_input(call) == known(130_213)


def test_d_12_an_undeclared_convention_gives_both_totals() -> None:
    call = Usage(input_tokens=130_213, cached_input_tokens=128_955, cache_write_input_tokens=1_253)
    assert inclusive_input(call) == Figure(130_213, 260_421, (AttemptGap.CONVENTION_UNKNOWN,))


def test_at_6_the_inclusive_total_needs_the_flag_or_every_part() -> None:
    assert inclusive_input(Usage(input_tokens=10, input_includes_cache=True)) == known(10)
    assert inclusive_input(Usage(input_tokens=10, cached_input_tokens=4, input_includes_cache=False)) == unknown(
        AttemptGap.USAGE_FIELD_ABSENT, low=14
    )
    assert inclusive_input(Usage(input_tokens=10, cached_input_tokens=0, cache_write_input_tokens=0)) == known(10)
    assert inclusive_input(Usage(input_tokens=10)) == Figure(10, None, (AttemptGap.CONVENTION_UNKNOWN,))
    assert inclusive_input(Usage(output_tokens=3)) == unknown(AttemptGap.USAGE_FIELD_ABSENT)


def test_at_5_more_cached_than_an_inclusive_input_is_violated() -> None:
    """The two shipped SWE-bench runs: 358 with 3,984,621 cached ones beside 1,000,574 with none."""
    assert inclusive_input(usage(input_tokens=358, cached_input_tokens=3_984_621)) == unknown(
        AttemptGap.CONVENTION_VIOLATED
    )
    assert inclusive_input(usage(input_tokens=1_000_574, cached_input_tokens=0)) == known(1_000_574)


def test_at_6_reasoning_follows_the_same_rule() -> None:
    assert inclusive_output(Usage(output_tokens=10, reasoning_tokens=4, output_includes_reasoning=False)) == known(14)
    assert inclusive_output(Usage(output_tokens=10, reasoning_tokens=4)) == Figure(
        10, 14, (AttemptGap.CONVENTION_UNKNOWN,)
    )
    assert inclusive_output(Usage(output_tokens=4, reasoning_tokens=10)) == known(14)


def test_d_03_zero_with_evidence_of_work_is_no_zero() -> None:
    assert inclusive_input(usage(input_tokens=0, work_shown=True)) == unknown(AttemptGap.USAGE_IMPLAUSIBLE)
    assert inclusive_input(usage(input_tokens=0, output_tokens=9)) == unknown(AttemptGap.USAGE_IMPLAUSIBLE)
    assert inclusive_input(usage(input_tokens=0, output_tokens=0)) == known(0)
    assert inclusive_output(usage(input_tokens=0, output_tokens=0, work_shown=True)).low == 0
    assert not inclusive_output(usage(input_tokens=0, output_tokens=0, work_shown=True)).known


def test_d_10_records_of_one_response_are_one_call_with_the_last_counts() -> None:
    lines = [usage(response_id="r", input_tokens=2, output_tokens=count) for count in (1, 1, 87)]
    for order in permutations(lines):
        found = calls_of(order)
        assert [(one.input_tokens, one.output_tokens) for one in found.own] == [(2, 87)]
        assert found.num_merged == 2


def test_d_11_cumulative_counters_are_not_summed_and_inherited_ones_stand_apart() -> None:
    own = [usage(counting=Counting.CUMULATIVE, stream="child", input_tokens=n, output_tokens=0) for n in (5_500, 3_000)]
    parent = usage(
        counting=Counting.CUMULATIVE, stream="child", inherited_from="parent", input_tokens=238_700_000, output_tokens=0
    )
    found = calls_of([*own, parent, replace(own[0])])
    assert [one.input_tokens for one in found.own] == [5_500]
    assert [one.input_tokens for one in found.inherited] == [238_700_000]
    assert token_figures(accounting(*own, parent))[Tokens.INPUT] == known(5_500)


def test_d_13_no_usage_is_no_free_call() -> None:
    assert token_figures(None)[Tokens.INPUT] == unknown(AttemptGap.USAGE_ABSENT)
    assert token_figures(accounting())[Tokens.OUTPUT] == unknown(AttemptGap.USAGE_ABSENT)


def test_d_16_every_billed_try_counts() -> None:
    tries = accounting(usage(input_tokens=100, output_tokens=0), usage(input_tokens=120, output_tokens=0))
    assert token_figures(tries)[Tokens.INPUT] == known(220)
    with_one_unknown = accounting(usage(input_tokens=100), usage(output_tokens=3))
    assert token_figures(with_one_unknown)[Tokens.INPUT] == unknown(AttemptGap.USAGE_FIELD_ABSENT, low=100)


def test_at_3_legacy_counters_enter_no_total() -> None:
    legacy = replace(WHOLE, source=AccountingSource.LEGACY)
    assert set(token_figures(legacy).values()) == {unknown(AttemptGap.LEGACY_ONLY)}


@pytest.mark.parametrize("complete", [None, False])
def test_at_9_an_account_that_may_not_be_all_says_so(complete: bool | None) -> None:
    found = token_figures(Accounting(AccountingSource.GATEWAY, usage=WHOLE.usage, complete=complete))
    assert found[Tokens.INPUT] == known(100, AttemptGap.REQUEST_LIST_UNVERIFIED)
