"""Costs as reported, one figure per pricing basis, and usage priced again by a rate card (AT-8): pure."""

from math import fsum

from paritrace.attempts.accounts import Accounting, AccountingSource, PricingBasis, PricingKind, Usage
from paritrace.attempts.figures import Figure, added, known, unknown
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.rate_card import PER, RateCard, Rates
from paritrace.attempts.usage import calls_of


def cost_figures(accounting: Accounting | None) -> dict[PricingBasis, Figure]:
    """Returns the cost of an account under every basis that it has; empty where it has none.

    Gaps: `pricing_unverified` where the basis itself is unknown, `request_list_unverified` where the account is not
    declared to cover every call.
    """
    if accounting is None or accounting.source is AccountingSource.LEGACY:
        return {}
    amounts: dict[PricingBasis, list[float]] = {}
    for cost in accounting.costs:
        amounts.setdefault(cost.basis, []).append(cost.amount)
    extra = () if accounting.complete else (AttemptGap.REQUEST_LIST_UNVERIFIED,)
    return {basis: known(fsum(values), *extra, *_unpriced(basis)) for basis, values in amounts.items()}


def _unpriced(basis: PricingBasis) -> tuple[AttemptGap, ...]:
    return (AttemptGap.PRICING_UNVERIFIED,) if basis.kind is PricingKind.UNKNOWN else ()


def repriced(accounting: Accounting | None, card: RateCard) -> Figure:
    """Returns what an account costs by a rate card.

    Gaps: `usage_absent`, `legacy_only`, `model_unpriced` (never 0), `usage_field_absent`, `usage_implausible`,
    `convention_unknown` and `convention_violated` where the buckets cannot be told.
    """
    if accounting is None or not accounting.usage:
        return unknown(AttemptGap.USAGE_ABSENT)
    if accounting.source is AccountingSource.LEGACY:
        return unknown(AttemptGap.LEGACY_ONLY)
    extra = () if accounting.complete else (AttemptGap.REQUEST_LIST_UNVERIFIED,)
    return added([_priced(call, card) for call in calls_of(accounting.usage).own], *extra)


def _priced(call: Usage, card: RateCard) -> Figure:
    rates = card.models.get(call.model or "")
    if rates is None:
        return unknown(AttemptGap.MODEL_UNPRICED)
    return added([_input_cost(call, rates), _output_cost(call, rates)])


def _input_cost(call: Usage, rates: Rates) -> Figure:
    cached, written = call.cached_input_tokens, call.cache_write_input_tokens
    if call.input_tokens is None:
        return unknown(AttemptGap.USAGE_FIELD_ABSENT)
    if call.input_tokens == 0 and (call.work_shown or call.output_tokens or cached is None):
        return unknown(AttemptGap.USAGE_IMPLAUSIBLE)
    parts = ((cached, rates.cached_input), (written, rates.cache_write_input))
    return _bucket_cost(call.input_tokens, rates.input, parts, call.input_includes_cache)


def _output_cost(call: Usage, rates: Rates) -> Figure:
    if call.output_tokens is None:
        return unknown(AttemptGap.USAGE_FIELD_ABSENT)
    rate = rates.output if rates.reasoning is None else rates.reasoning
    if rate == rates.output and call.output_includes_reasoning:
        return known(call.output_tokens * rates.output / PER)  # one price: how it divides does not matter
    return _bucket_cost(
        call.output_tokens, rates.output, ((call.reasoning_tokens, rate),), call.output_includes_reasoning
    )


def _bucket_cost(
    primary: int, rate: float, parts: tuple[tuple[int | None, float | None], ...], includes: bool | None
) -> Figure:
    """The cost of a counter and of the parts that have rates of their own.

    A part that is not counted and that the card does not price is no bucket of that model, where the
    counter includes it.
    """
    if any(count and price is None for count, price in parts):
        return unknown(AttemptGap.MODEL_UNPRICED)
    if any(count is None for count, _ in parts):
        same = includes and all(count is not None or price in (None, rate) for count, price in parts)
        if not same:
            return unknown(AttemptGap.USAGE_FIELD_ABSENT)
    there = sum(count or 0 for count, _ in parts)
    apart = fsum((count or 0) * (price or 0) / PER for count, price in parts)
    inside, beside = (primary - there) * rate / PER + apart, primary * rate / PER + apart
    if includes is None and there and there <= primary:
        return Figure(inside, beside, (AttemptGap.CONVENTION_UNKNOWN,))
    if includes and there > primary:
        return unknown(AttemptGap.CONVENTION_VIOLATED)
    return known(inside if includes else beside)
