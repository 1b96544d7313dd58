"""What is known of one attempt after its evidence was weighed: tokens, cost, times, gaps: pure (AT-3 to AT-9)."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from paritrace.attempts.accounts import Accounting, AccountingSource, PricingBasis, Usage
from paritrace.attempts.figures import Figure, added, unknown
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.manifest import Attempt, RequestState
from paritrace.attempts.pricing import cost_figures, repriced
from paritrace.attempts.rate_card import RateCard
from paritrace.attempts.requests import RequestFacts
from paritrace.attempts.timing import Times, times_of
from paritrace.attempts.usage import FIGURES, Tokens, calls_of, token_figures

Figures = dict[Tokens, Figure]


class AttemptFacts(Struct, frozen=True):
    """One attempt with all that its evidence says.

    `tokens` and `costs` count once: by the attempt's own account where there is one, else by its requests'. `between`
    is how much more the attempt's own account has than its requests together, where both are known (AT-15).
    """

    attempt: Attempt
    requests: tuple[RequestFacts, ...]
    tokens: Figures
    costs: dict[PricingBasis, Figure]
    repriced: Figure | None
    inherited: dict[Tokens, Figure]
    legacy: tuple[Accounting, ...]
    num_merged: int
    times: Times
    gaps: Counter[str]
    between: dict[str, float]


def facts_of(
    attempt: Attempt, requests: tuple[RequestFacts, ...], *, card: RateCard | None, extra: Iterable[Noted] = ()
) -> AttemptFacts:
    """Returns the facts of an attempt.

    Args:
        attempt: its entry in the manifest.
        requests: its requests, weighed.
        card: by what usage is priced again; None leaves that out.
        extra: gaps that reading its sources showed.
    """
    own = attempt.accounting if attempt.accounting is None or _counts(attempt.accounting) else None
    accounts = _accounts(attempt, requests, own)
    used = [one for one in accounts if one is not None and _counts(one)]
    calls = [calls_of(one.usage) for one in used]
    return AttemptFacts(
        attempt=attempt,
        requests=requests,
        tokens=_tokens(attempt, accounts),
        costs=_costs(attempt, accounts),
        repriced=None if card is None else _joined(attempt, [repriced(one, card) for one in accounts]),
        inherited=_inherited([call for one in calls for call in one.inherited]),
        legacy=_legacy(attempt, requests),
        num_merged=sum(one.num_merged for one in calls),
        times=times_of(attempt),
        gaps=_gaps(attempt, requests, used, extra),
        between={} if own is None else _between(own, requests),
    )


def _counts(accounting: Accounting) -> bool:
    return accounting.source is not AccountingSource.LEGACY


def _accounts(attempt: Attempt, requests: tuple[RequestFacts, ...], own: Accounting | None) -> list[Accounting | None]:
    """The accounts whose figures together are the attempt's; never the attempt's and its requests' at once (AT-6)."""
    if own is not None:
        return [own]
    if requests:
        return [one.accounting for one in requests]
    return [attempt.accounting]


def _tokens(attempt: Attempt, accounts: list[Accounting | None]) -> Figures:
    each = [token_figures(one) for one in accounts]
    return {kind: _joined(attempt, [one[kind] for one in each]) for kind in Tokens}


def _costs(attempt: Attempt, accounts: list[Accounting | None]) -> dict[PricingBasis, Figure]:
    """A figure under each basis; an account without that basis leaves it a gap there."""
    each = [cost_figures(one) for one in accounts]
    bases = {basis for one in each for basis in one}
    absent = unknown(AttemptGap.COST_ABSENT)
    return {basis: _joined(attempt, [one.get(basis, absent) for one in each]) for basis in bases}


def _joined(attempt: Attempt, figures: list[Figure]) -> Figure:
    """The figure of all accounts together, and what the manifest says about their completeness."""
    if not attempt.present:
        return unknown(AttemptGap.RESULT_MISSING)
    own = attempt.accounting is not None and _counts(attempt.accounting)
    unlisted = any(one.state is RequestState.UNEXPECTED for one in attempt.requests)
    declared = own or (attempt.requests_complete and not unlisted)
    return added(figures, *(() if declared else (AttemptGap.REQUEST_LIST_UNVERIFIED,)))


def _inherited(calls: list[Usage]) -> Figures:
    return {kind: added([FIGURES[kind](call) for call in calls]) for kind in Tokens} if calls else {}


def _legacy(attempt: Attempt, requests: tuple[RequestFacts, ...]) -> tuple[Accounting, ...]:
    accounts = [attempt.accounting, *(one.accounting for one in requests)]
    return tuple(one for one in accounts if one is not None and not _counts(one))


def _gaps(
    attempt: Attempt, requests: tuple[RequestFacts, ...], used: list[Accounting], extra: Iterable[Noted]
) -> Counter[str]:
    """Every gap that was noted of this attempt, by reason."""
    noted = [*attempt.gaps, *extra, *(gap for one in requests for gap in one.gaps)]
    noted += [gap for one in used for gap in one.gaps]
    found: Counter[str] = Counter()
    for one in noted:
        found[str(one.reason)] += one.count
    if not attempt.present:
        found.setdefault(str(AttemptGap.RESULT_MISSING), 1)  # one attempt, once, also where its importer noted it
    return found


def _between(own: Accounting, requests: tuple[RequestFacts, ...]) -> dict[str, float]:
    """What the attempt's own account has beyond its requests' together, where both are known (AT-15)."""
    if not requests:
        return {}
    whole = token_figures(own)
    parts = [token_figures(one.accounting) for one in requests]
    found: dict[str, float] = {}
    for kind in Tokens:
        there = added([one[kind] for one in parts])
        if whole[kind].known and there.known and whole[kind].low != there.low:
            found[str(kind)] = whole[kind].low - there.low
    return found
