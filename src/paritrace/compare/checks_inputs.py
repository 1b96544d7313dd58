"""Gathers what must differ between ranks rather than agree: batches and the states of random generators (CP-25)."""

from collections.abc import Mapping

from paritrace.compare.checks_sharing import Sharing
from paritrace.evidence.calls import Call, Context, Kind, Origin, OriginKind, Phase, State, StateNames
from paritrace.evidence.definition import Definition
from paritrace.evidence.gaps import Gap

BATCH, BATCH_ORDER, RNG = "batch", "batch_order", "rng"
SET_UP_STEP, NO_MODULE = 0, 0  # a script makes its model before its first step ends, outside every module's forward


class Inputs:
    """Batches by (step, micro-batch, nth model fed) and generators by (name, step), of all sessions."""

    def __init__(self) -> None:
        self.batches: Sharing[tuple[int, int, int], int] = Sharing()
        self.generators: Sharing[tuple[str, int], str] = Sharing()
        self.advanced: dict[tuple[str, int], int] = {}  # (generator, step) -> bits of ranks where its state changed
        self.drawn: dict[tuple[str, int], int] = {}  # -> bits of ranks where a forward call drew from it
        # what the first such call of a step also read: where that agrees, ranks do the same work
        self.acted_on: Sharing[tuple[str, int], tuple[str, ...]] = Sharing()


class InputRows:
    """Reads the batches and generators of one session."""

    def __init__(self, rank: int, inputs: Inputs) -> None:
        self._rank = rank
        self._inputs = inputs
        self._fed: dict[tuple[int, int, int], int] = {}
        self._last: dict[str, tuple[int, str]] = {}  # generator -> the step and state it was seen in last
        self._acted: dict[str, int] = {}  # generator -> the step whose first drawing call was seen
        self._contexts: dict[int, Context] = {}
        self._origins: dict[int, Origin] = {}
        self._rng_kinds: set[int] = set()
        self._ordered = False  # the order of a batch's elements is recorded, before its elements

    def see(self, record: Definition) -> None:
        """Takes a definition."""
        match record:
            case Context():
                self._contexts[record.id] = record
            case Origin():
                if record.kind is OriginKind.RNG:
                    self._origins[record.id] = record
            case Kind():
                if record.dtype == RNG:
                    self._rng_kinds.add(record.id)
            case _:
                pass

    def see_state(self, state: State, names: Mapping[int, StateNames]) -> None:
        """Takes one group of the inventory."""
        known = names.get(state.names)
        if known is None:
            return
        if known.group == BATCH_ORDER:
            self._ordered = True
            self._batch(state, known)
        elif known.group == BATCH and not self._ordered:  # a capture of old: only the elements are known
            self._batch(state, known)
        elif known.group == RNG and state.moment == "begin":
            self._generators(state, known)

    def see_call(self, call: Call) -> None:
        """Takes a call: one that reads a generator in the forward pass draws from it."""
        if not self._rng_kinds:
            return
        for slot in call.inputs:
            if slot.kind in self._rng_kinds and isinstance(slot.source, int):
                self._draw(call, self._origins.get(slot.source))

    def _draw(self, call: Call, origin: Origin | None) -> None:
        context = self._contexts.get(call.context)
        if origin is None or context is None or context.phase is not Phase.FORWARD:
            return
        if context.step == SET_UP_STEP and call.scope == NO_MODULE:
            return  # replicas draw their first weights alike on purpose; what a training draws shows later
        drawn, key = self._inputs.drawn, (origin.name, context.step)
        drawn[key] = drawn.get(key, 0) | 1 << self._rank
        read = tuple(slot.bits for slot in call.inputs if slot.kind not in self._rng_kinds)
        known = tuple(bits for bits in read if not isinstance(bits, Gap))
        if known and len(known) == len(read) and self._acted.get(origin.name) != context.step:
            self._acted[origin.name] = context.step
            self._inputs.acted_on.see(self._rank, key, known)

    def _batch(self, state: State, names: StateNames) -> None:
        values = tuple(value for value in state.values if not isinstance(value, Gap))
        if not values:
            return
        place = (state.step, state.microbatch, state.names)
        if place not in self._fed:
            self._fed = {key: nth for key, nth in self._fed.items() if key[:2] == place[:2]}
        nth = self._fed[place] = self._fed.get(place, -1) + 1
        digest = hash((names.names, values))
        self._inputs.batches.see(self._rank, (state.step, state.microbatch, nth), digest)

    def _generators(self, state: State, names: StateNames) -> None:
        for name, value in zip(names.names, state.values, strict=False):
            if isinstance(value, Gap):
                continue
            self._inputs.generators.see(self._rank, (name, state.step), value)
            step, last = self._last.get(name, (state.step, value))
            if last != value:
                advanced, key = self._inputs.advanced, (name, step)
                advanced[key] = advanced.get(key, 0) | 1 << self._rank
            self._last[name] = (state.step, value)
