"""What the engine may ask about the inputs of one side's calls: identity, names, recorded flow (CP-3, CP-20)."""

from collections.abc import Hashable, Mapping

from paritrace.compare.collective_facts import CollectiveFacts, wider_stream
from paritrace.compare.load import Recorded
from paritrace.correspondence.records import Flow, Made
from paritrace.evidence.calls import Call, OriginKind, Slot
from paritrace.evidence.gaps import CaptureGap, Gap

NAMED_ORIGINS = frozenset(OriginKind) - {OriginKind.UNKNOWN, OriginKind.SAVED}
OWNED = frozenset({OriginKind.PARAMETER, OriginKind.BUFFER, OriginKind.OPTIMIZER_STATE})  # named once in a run
SlotFact = tuple[int, int, str | Gap[CaptureGap]]
"""Slot name, kind and fingerprint in words that both sides share: equal facts mean equal evidence."""


class InputEvidence:
    """What the engine may ask about one call's inputs."""

    def __init__(
        self,
        recorded: Recorded,
        calls: list[Call],
        index_of: dict[int, int],
        *,
        inputs: list[tuple[SlotFact, ...]],
        words: tuple[dict[int, str], dict[int, int]],
        collectives: Mapping[int, CollectiveFacts],
    ) -> None:
        self._recorded = recorded
        self._calls = calls
        self._index_of = index_of
        self._inputs = inputs
        self._origins, self._scalars = words
        self._collectives = collectives

    def anchor_inputs(self, i: int) -> Hashable | None:
        """The inputs of a call, None when one was not captured or none can tell two calls apart (CP-3, A-01)."""
        call = self._calls[i]
        telling = False
        for place, slot in enumerate(call.inputs):
            if isinstance(slot.bits, Gap):
                return None
            telling = telling or self._tells(call, place, slot)
        return (self._scalars[call.scalars], self._inputs[i]) if telling else None

    def _tells(self, call: Call, place: int, slot: Slot) -> bool:
        detail = self._recorded.details.get((call.id, "i", place))
        return self._recorded.kinds[slot.kind].num_elements > 1 and not (detail is not None and detail.degenerate)

    def names(self, i: int) -> tuple[str, ...]:
        """The parameters, buffers and optimizer states that a call consumes; the parameters that a bucket holds."""
        facts = self._collectives.get(i)
        if facts is not None and facts.parameters:
            return facts.parameters
        named: list[str] = []
        for slot in self._calls[i].inputs:
            if isinstance(slot.source, int) and slot.source >= 0:
                kind = self._recorded.origins[slot.source].kind
                if kind in OWNED:
                    named.append(self._origins[slot.source])
        return tuple(named)

    def flow(self, i: int) -> tuple[Flow, ...]:
        """Where each input comes from (CP-20). A bucket is written by many calls, of which the last says nothing."""
        facts = self._collectives.get(i)
        if facts is not None and facts.parameters:
            return ()
        return tuple([self._flow(slot) for slot in self._calls[i].inputs])

    def wider(self, i: int) -> Hashable | None:
        """The streams of all groups at a collective's moment: the other side may have run it over another group."""
        if i not in self._collectives:
            return None
        context = self._recorded.contexts[self._calls[i].context]
        return wider_stream((context.step, context.microbatch, context.phase.value))

    def _flow(self, slot: Slot) -> Flow:
        source = slot.source
        if not isinstance(source, int):
            maker = self._index_of.get(source[0])
            return None if maker is None else Made(maker, source[1])
        if source < 0:
            return None
        origin = self._recorded.origins[source]
        return self._origins[source] if origin.kind in NAMED_ORIGINS and origin.name else None
