"""What the engine may ask about the inputs of one side's calls: identity, names, recorded flow (CP-3, CP-20)."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from paritrace.compare.call_columns import CallColumns
from paritrace.compare.collective_facts import CollectiveFacts, wider_stream
from paritrace.compare.load import Recorded
from paritrace.compare.lookups import IdIndex, Interner, compact, looked_up
from paritrace.compare.slot_words import Numbers, SlotWords
from paritrace.correspondence.records import Flow, Made
from paritrace.evidence.call_batches import FROM_ORIGIN
from paritrace.evidence.calls import OriginKind

NAMED_ORIGINS = frozenset(OriginKind) - {OriginKind.UNKNOWN, OriginKind.SAVED}
OWNED = frozenset({OriginKind.PARAMETER, OriginKind.BUFFER, OriginKind.OPTIMIZER_STATE})  # named once in a run


class InputEvidence:
    """What the engine may ask about one call's inputs."""

    def __init__(
        self,
        recorded: Recorded,
        calls: CallColumns,
        index_of: IdIndex,
        *,
        words: SlotWords,
        origins: dict[int, str],
        collectives: Mapping[int, CollectiveFacts],
    ) -> None:
        self._recorded = recorded
        self._calls = calls
        self._words = words
        self._index_of = index_of
        self._origins = origins
        self._collectives = collectives
        self.fingerprints = compact(words.fingerprints(), "Q")  # of scalars and inputs, by call
        self._anchors = _anchors(recorded, calls, words)
        self.anchored = compact(self._anchors, "b")
        self._first, self._middle = calls.values("first"), calls.values("middle")
        self._source, self._output = calls.values("source"), calls.values("output")

    def anchor_inputs(self, i: int) -> Hashable | None:
        """The inputs of a call, None when one was not captured or none can tell two calls apart (CP-3, A-01)."""
        return self.fingerprints[i] if self._anchors[i] else None

    def names(self, i: int) -> tuple[str, ...]:
        """The parameters, buffers and optimizer states that a call consumes; the parameters that a bucket holds."""
        facts = self._collectives.get(i)
        if facts is not None and facts.parameters:
            return facts.parameters
        origins = self._recorded.origins
        return tuple(
            [
                self._origins[source]
                for source, output in self._sources(i)
                if output == FROM_ORIGIN and source >= 0 and origins[source].kind in OWNED
            ]
        )

    def name_words(self, numbered: Interner) -> Sequence[int]:
        """A number for each call, equal where `names` gives the same: in 2**-64 of cases also where not."""
        calls, origins = self._calls, self._recorded.origins
        table = {-1: 0} | {o.id: numbered(self._origins[o.id]) + 1 if o.kind in OWNED else 0 for o in origins.values()}
        named = np.where(calls.column("output") == FROM_ORIGIN, calls.column("source"), -1)
        words = looked_up(np.where(named < 0, -1, named), table).astype(np.uint64)
        found = compact(self._words.input_sums(words), "Q")
        for i, facts in self._collectives.items():
            if facts.parameters:
                found[i] = numbered(facts.parameters)
        return found

    def flow(self, i: int) -> tuple[Flow, ...]:
        """Where each input comes from (CP-20). A bucket is written by many calls, of which the last says nothing."""
        facts = self._collectives.get(i)
        if facts is not None and facts.parameters:
            return ()
        return tuple([self._flow(source, output) for source, output in self._sources(i)])

    def wider(self, i: int) -> Hashable | None:
        """The streams of all groups at a collective's moment: the other side may have run it over another group."""
        if i not in self._collectives:
            return None
        context = self._recorded.contexts[self._calls[i].context]
        return wider_stream((context.step, context.microbatch, context.phase.value))

    def _sources(self, i: int) -> list[tuple[int, int]]:
        span = slice(self._first[i], self._middle[i])
        return list(zip(self._source[span].tolist(), self._output[span].tolist(), strict=True))

    def _flow(self, source: int, output: int) -> Flow:
        if output != FROM_ORIGIN:
            maker = self._index_of.get(source)
            return None if maker is None else Made(maker, output)
        if source < 0:
            return None
        origin = self._recorded.origins[source]
        return self._origins[source] if origin.kind in NAMED_ORIGINS and origin.name else None


def _anchors(recorded: Recorded, calls: CallColumns, words: SlotWords) -> Numbers:
    """The calls whose inputs were all captured and of which one has more than one element and is not degenerate."""
    large = {kind.id: int(kind.num_elements > 1) for kind in recorded.kinds.values()}
    telling = looked_up(calls.column("kind"), large).astype(np.bool_)
    counts = words.input_counts()
    for place, slot in recorded.details.degenerate(calls.column("id")):
        if slot < counts[place]:
            telling[words.first[place] + slot] = False
    found: Numbers = (words.counted(telling, inputs=True) > 0) & (words.counted(words.gaps, inputs=True) == 0)
    return found
