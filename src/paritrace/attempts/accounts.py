"""What an attempt or a request used and cost, as its source says: tokens, conventions, prices (AT-6 to AT-8)."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from paritrace.attempts.gaps import Noted
from paritrace.attempts.origins import Id, Origin, Whole

LARGEST = 1e100  # of any figure: squares of it, and sums of many, are still numbers
Amount = Annotated[float, Meta(ge=0.0, le=LARGEST)]


class Counting(StrEnum):
    """What a token counter counts."""

    DELTA = "delta"  # this call alone
    CUMULATIVE = "cumulative"  # everything since the start of its stream: the last one counts, none are summed


class Usage(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Token counters of one model in one call, stream or attempt, as they were reported (AT-6).

    None is unknown, never zero. The convention flags are None where the source does not declare them: an importer sets
    them only from what the format defines.
    `response_id`: records with one id are one call, seen several times; the last and largest counts stand (AT-7).
    `stream`: cumulative counters of one stream follow each other. `inherited_from`: the stream whose history was
    replayed into this record; such counters are reported apart and enter no sum.
    `work_shown`: something else in the evidence shows that the model worked, so zero tokens are implausible.
    """

    model: str | None = None
    input_tokens: Whole | None = None
    cached_input_tokens: Whole | None = None  # read from a cache
    cache_write_input_tokens: Whole | None = None
    output_tokens: Whole | None = None
    reasoning_tokens: Whole | None = None
    input_includes_cache: bool | None = None  # of cache reads and cache writes
    output_includes_reasoning: bool | None = None
    counting: Counting = Counting.DELTA
    response_id: str = ""
    stream: str = ""
    inherited_from: str = ""
    work_shown: bool = False
    origin: Origin | None = None


class PricingKind(StrEnum):
    """Where a price comes from."""

    PROVIDER_REPORTED = "provider_reported"
    RATE_CARD = "rate_card"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"


class PricingBasis(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """By what an amount was priced; amounts of two bases are never in one sum (AT-8)."""

    kind: PricingKind
    id: str = ""  # of the provider, the card, the estimator
    version: str = ""  # "" is not recorded
    currency: str = "USD"
    verified: bool = False  # somebody checked this basis against the provider's bill


class Cost(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An amount of money under one pricing basis. An absent cost has no `Cost`; 0 is free, by its source's word."""

    amount: Amount
    basis: PricingBasis
    origin: Origin | None = None


class AccountingSource(StrEnum):
    """Who counted."""

    PROVIDER_RESPONSE = "provider_response"
    ADAPTER_REPORTED = "adapter_reported"  # an agent or an adapter
    HARNESS_REPORTED = "harness_reported"  # the evaluation tool itself
    GATEWAY = "gateway"
    COMPUTED = "computed"
    LEGACY = "legacy"  # without declared source, scope or coverage: shown, never in a total (AT-3)


class Accounting(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Usage and cost of one request, or of one attempt as a whole.

    `complete`: it covers every model call of its scope; None is not declared. `usage` has one record per model, or one
    per call; `costs` one per pricing basis.
    """

    source: AccountingSource
    usage: tuple[Usage, ...] = ()
    costs: tuple[Cost, ...] = ()
    complete: bool | None = None
    gaps: tuple[Noted, ...] = ()
    origin: Origin | None = None


class RunTotal(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the tool itself says that one configuration's run used in all, against which attempts are held (AT-15)."""

    id: Id  # of the run or the log
    accounting: Accounting
