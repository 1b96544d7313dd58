"""Pairing by recorded flow: equal key, and every input comes from the same place on both sides (CP-3b)."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence

from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.records import Made, Records
from paritrace.correspondence.vocabulary import Basis

Homes = tuple[Sequence[int], Sequence[int]]
Signature = tuple[Hashable, ...]


class Dataflow:
    """The fixpoint of CP-3b over the records that other rules left unpaired. No values, no similarity, symmetric.

    `homes` gives for each side the paired scope a record stands in, as one id for both sides, or -1. Streams in
    `leave_out` wait for rules of their own.
    """

    def __init__(self, pairing: Pairing, *, homes: Homes, leave_out: Collection[Hashable] = ()) -> None:
        self._pairing = pairing
        self._homes = homes
        self._waiting: tuple[dict[int, list[int]], dict[int, list[int]]] = (defaultdict(list), defaultdict(list))
        self._groups: dict[Signature, tuple[list[int], list[int]]] = {}
        self._changed: set[Signature] = set()
        self._watch(leave_out)

    def _watch(self, leave_out: Collection[Hashable]) -> None:
        for side, records in enumerate((self._pairing.a, self._pairing.b)):
            for i in self._pairing.unpaired(side):
                if self._homes[side][i] >= 0 and records.streams[i] not in leave_out:
                    for made in _makers(records, i):
                        self._waiting[side][made.record].append(i)
                    self._consider(side, i)

    def follow(self, i: int, j: int) -> None:
        """Look again at the records that consume what the fresh pair (i, j) made."""
        for side, maker in ((0, i), (1, j)):
            partners = self._partners(side)
            for consumer in self._waiting[side].pop(maker, ()):
                if partners[consumer] < 0:
                    self._consider(side, consumer)

    def settle(self) -> bool:
        """Pair every group whose counts are equal now; say whether anything was paired."""
        progress = False
        changed, self._changed = self._changed, set()
        for signature in sorted(changed, key=lambda s: min(self._groups[s][0] or [-1])):
            ours = [i for i in self._groups[signature][0] if self._pairing.partner_a[i] < 0]
            theirs = [j for j in self._groups[signature][1] if self._pairing.partner_b[j] < 0]
            if ours and len(ours) == len(theirs):
                progress = True
                for i, j in zip(sorted(ours), sorted(theirs), strict=True):
                    self._pairing.pair(i, j, basis=Basis.DATAFLOW)
        return progress

    def _consider(self, side: int, i: int) -> None:
        signature = self._signature(side, i)
        if signature is not None:
            group = self._groups.setdefault(signature, ([], []))[side]
            if i not in group:
                group.append(i)
                self._changed.add(signature)

    def _signature(self, side: int, i: int) -> Signature | None:
        """A record's place and key, and where its inputs come from; None when any of that is not known."""
        records = (self._pairing.a, self._pairing.b)[side]
        found = sources(self._pairing, i, side=side)
        if found is None:
            return None
        return (records.streams[i], records.layers[i], self._homes[side][i], records.keys[i], *found)

    def _partners(self, side: int) -> Sequence[int]:
        return self._pairing.partner_a if side == 0 else self._pairing.partner_b


def _makers(records: Records, i: int) -> Iterable[Made]:
    return (flow for flow in records.flow(i) if isinstance(flow, Made))


def sources(pairing: Pairing, i: int, *, side: int) -> Signature | None:
    """Where a record's inputs come from, in words that both sides share; None when any is not known or none is."""
    records, partners = ((pairing.a, pairing.partner_a), (pairing.b, pairing.partner_b))[side]
    found: list[Hashable] = []
    for flow in records.flow(i):
        if isinstance(flow, Made):
            partner = partners[flow.record]
            if partner < 0:
                return None
            found.append((flow.record if side == 0 else partner, flow.output))
        elif flow is None:
            return None
        else:
            found.append(flow)
    return tuple(found) or None
