"""Finds the first non-finite value of a run: in execution order, inputs at entering, outputs at leaving (CP-25)."""

from collections.abc import Sequence

from msgspec import Struct

from paritrace.evidence.calls import Call, Counts, Detail


class NonFinite(Struct, frozen=True):
    """A slot that holds NaN or infinity. `moment` orders it: entering the call for inputs, leaving it for outputs."""

    moment: int
    call: Call
    direction: str  # "i" or "o"
    slot: int
    counts: Counts


class NonFinites:
    """`first` is the earliest slot with NaN or +infinity; -infinity alone is how masks are written, counted apart."""

    def __init__(self) -> None:
        self.slots_read = 0
        self.slots_with = 0
        self.slots_with_negative_infinity_only = 0
        self.first: NonFinite | None = None
        self.first_negative_infinity: NonFinite | None = None

    def see(self, call: Call, details: Sequence[Detail]) -> None:
        """Takes a call with the summaries of its slots."""
        for detail in details:
            if detail.counts is None:
                continue
            self.slots_read += 1
            found = NonFinite(
                moment=call.id if detail.side == "i" else call.left,
                call=call,
                direction=detail.side,
                slot=detail.slot,
                counts=detail.counts,
            )
            self._judge(found)

    def _judge(self, found: NonFinite) -> None:
        counts = found.counts
        if counts.nan or counts.positive_infinity:
            self.slots_with += 1
            self.first = _earlier(self.first, found)
        elif counts.negative_infinity:
            self.slots_with_negative_infinity_only += 1
            self.first_negative_infinity = _earlier(self.first_negative_infinity, found)


def _earlier(first: NonFinite | None, found: NonFinite) -> NonFinite:
    return found if first is None or found.moment < first.moment else first
