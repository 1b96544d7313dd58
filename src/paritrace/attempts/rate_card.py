"""A local rate card: what tokens of a model cost, by bucket, under a version (AT-8)."""

from typing import Annotated

from msgspec import Meta, Struct

from paritrace.attempts.accounts import PricingBasis, PricingKind
from paritrace.attempts.origins import Id

FORMAT = "paritrace-rate-card"
VERSION = "1.0"
PER = 1_000_000  # rates are per million tokens

Rate = Annotated[float, Meta(ge=0.0)]


class Rates(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Rates of one model per million tokens. None is no rate: tokens of that bucket are unpriced, never free."""

    input: Rate
    output: Rate
    cached_input: Rate | None = None
    cache_write_input: Rate | None = None
    reasoning: Rate | None = None  # None: reasoning is priced as output


class RateCard(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rate card (version 1), by exact model name: an alias is another name."""

    format: str
    format_version: str
    id: Id
    version: Id
    currency: str = "USD"
    verified: bool = False
    models: dict[str, Rates]


def basis_of(card: RateCard) -> PricingBasis:
    """Returns the pricing basis of amounts that this card prices."""
    return PricingBasis(PricingKind.RATE_CARD, card.id, card.version, card.currency, card.verified)
