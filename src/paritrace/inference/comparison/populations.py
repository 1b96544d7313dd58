"""How many requests went how, each with bounds where the outcome of some is not known: pure (IN-17)."""

from collections.abc import Mapping

from msgspec import Struct

from paritrace.inference.importers.client_terms import Outcome

UNKNOWN = "unknown"  # a request whose outcome no source says in our words

_NOT_SENT = (Outcome.DROPPED,)
_NOT_ACCEPTED = (Outcome.UNREACHABLE, Outcome.DELIVERY_UNKNOWN, Outcome.REJECTED)


class Bounds(Struct, frozen=True):
    """At least `low` and at most `high` requests."""

    low: int
    high: int


class Populations(Struct, frozen=True):
    """offered = dropped + sent; sent = unreachable + delivery_unknown + rejected + accepted;
    accepted = successful + failed + timed_out + cancelled, and those whose end was never seen."""

    offered: Bounds
    dropped: Bounds
    sent: Bounds
    unreachable: Bounds
    delivery_unknown: Bounds
    rejected: Bounds
    accepted: Bounds
    successful: Bounds
    failed: Bounds
    timed_out: Bounds
    cancelled: Bounds
    num_incomplete: int
    num_unknown: int

    @property
    def successful_fraction(self) -> tuple[float, float] | None:
        """Of what was offered, as bounds: a failure is never left out, and what is not known counts both ways."""
        if not self.offered.high:
            return None
        return self.successful.low / self.offered.high, self.successful.high / self.offered.high


def populations(counts: Mapping[str, int]) -> Populations:
    """Returns the populations of counts by outcome; a word that is no outcome counts as unknown."""
    known = {outcome: counts.get(outcome.value, 0) for outcome in Outcome}
    total = sum(counts.values())
    unknown = total - sum(known.values())
    incomplete = known[Outcome.INCOMPLETE]

    def of(outcome: Outcome, *, further: int = 0) -> Bounds:
        return Bounds(known[outcome], known[outcome] + unknown + further)

    not_sent = sum(known[one] for one in _NOT_SENT)
    not_accepted = not_sent + sum(known[one] for one in _NOT_ACCEPTED)
    maybe_accepted = known[Outcome.DELIVERY_UNKNOWN]
    return Populations(
        offered=Bounds(total, total),
        dropped=of(Outcome.DROPPED),
        sent=Bounds(total - not_sent - unknown, total - not_sent),
        unreachable=of(Outcome.UNREACHABLE),
        delivery_unknown=of(Outcome.DELIVERY_UNKNOWN),
        rejected=of(Outcome.REJECTED),
        accepted=Bounds(total - not_accepted - unknown, total - not_accepted + maybe_accepted),
        successful=of(Outcome.SUCCESSFUL),
        failed=of(Outcome.FAILED, further=incomplete),
        timed_out=of(Outcome.TIMED_OUT, further=incomplete),
        cancelled=of(Outcome.CANCELLED, further=incomplete),
        num_incomplete=incomplete,
        num_unknown=unknown,
    )
