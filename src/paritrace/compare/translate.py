"""Translating recorded calls into the engine's neutral records, spelled alike on both sides (CP-1, CP-6)."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from paritrace.compare.load import Recorded
from paritrace.compare.settings import Settings
from paritrace.compare.sites import Lines, site_keys
from paritrace.compare.slots import comparable_kind
from paritrace.correspondence.records import Flow, Made, Records, Scopes
from paritrace.evidence.calls import Call, Flag, Level, Origin, OriginKind, Phase, Slot
from paritrace.evidence.gaps import CaptureGap, Gap

ACCUMULATE = "AccumulateGrad:"
RECOMPUTE = Flag.RECOMPUTE.value  # a plain number: once per call, an enum costs more than the comparison
LEVELS = {level: place for place, level in enumerate(Level)}
NAMED_ORIGINS = frozenset(OriginKind) - {OriginKind.UNKNOWN, OriginKind.SAVED}
OWNED = frozenset({OriginKind.PARAMETER, OriginKind.BUFFER, OriginKind.OPTIMIZER_STATE})  # named once in a run
SlotFact = tuple[int, int, str | Gap[CaptureGap]]
"""Slot name, kind and fingerprint in words that both sides share: equal facts mean equal evidence."""


class Interner:
    """Numbers for values, the same for both sides."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def __call__(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))


@dataclass(slots=True, kw_only=True)
class Side:
    """One session's calls as the comparison uses them: columns by index, in execution order."""

    recorded: Recorded
    calls: list[Call]
    index_of: dict[int, int]
    scope_of: dict[int, int]  # scope id -> index in `scope_paths`
    scope_paths: list[str]
    origin_names: dict[int, str]
    scalar_facts: dict[int, int]
    kind_words: dict[int, int]  # kind id -> number of what makes fingerprints comparable, the same on both sides
    input_facts: list[tuple[SlotFact, ...]] = field(default_factory=list[tuple[SlotFact, ...]])
    output_facts: list[tuple[SlotFact, ...]] = field(default_factory=list[tuple[SlotFact, ...]])
    records: Records

    def context_of(self, i: int) -> tuple[int, int, str]:
        """Step, micro-batch and phase of a call."""
        context = self.recorded.contexts[self.calls[i].context]
        return context.step, context.microbatch, context.phase.value

    def level_of(self, i: int) -> Level:
        return self.recorded.functions[self.calls[i].function].level

    def module_of(self, i: int) -> str:
        return self.scope_paths[self.scope_of[self.calls[i].scope]]


def translate(baseline: Recorded, candidate: Recorded, *, settings: Settings, lines: Lines) -> tuple[Side, Side]:
    """Translate both sides together, so that equal things get equal words."""
    sites = site_keys(baseline.sites, candidate.sites, lines=lines)
    words = (Interner(), Interner(), Interner(), Interner())
    return (
        _Translator(baseline, sites.baseline, settings=settings, words=words).side(),
        _Translator(candidate, sites.candidate, settings=settings, words=words).side(),
    )


class _Translator:
    def __init__(
        self,
        recorded: Recorded,
        sites: dict[int, Hashable],
        *,
        settings: Settings,
        words: tuple[Interner, Interner, Interner, Interner],
    ) -> None:
        self._recorded = recorded
        self._settings = settings
        self._key_of, streams, kinds, scalars = words
        self._sites = {site: self._key_of(key) for site, key in sites.items()}
        self._functions = {f.id: (LEVELS[f.level], f.name) for f in recorded.functions.values()}
        self._names = {number: self._key_of(("slot", text)) for number, text in recorded.names.items()}
        self._kinds = {kind.id: kinds(comparable_kind(kind)) for kind in recorded.kinds.values()}
        self._scalars = {-1: -1} | {s.id: scalars(tuple(sorted(s.values.items()))) for s in recorded.scalars.values()}
        self._origins = {o.id: self._origin(o) for o in recorded.origins.values()}
        self._streams_of = streams

    def _origin(self, origin: Origin) -> str:
        return f"{origin.kind.value}:{self._settings.spelled(origin.name)}"

    def side(self) -> Side:
        recorded = self._recorded
        scope_of, tree, paths = self._scopes()
        calls = [call for call in recorded.calls if not self._ignored(call, paths[scope_of[call.scope]])]
        index_of = {call.id: i for i, call in enumerate(calls)}
        names, kinds = self._names, self._kinds
        inputs = [tuple([(names[s.name], kinds[s.kind], s.bits) for s in call.inputs]) for call in calls]
        outputs = [tuple([(names[s.name], kinds[s.kind], s.bits) for s in call.outputs]) for call in calls]
        evidence = _Evidence(recorded, calls, index_of, inputs=inputs, origins=self._origins, scalars=self._scalars)
        levels = [self._functions[call.function][0] for call in calls]
        module = LEVELS[Level.MODULE]
        labels = [self._label(call) for call in calls]
        records = Records(
            streams=self._streams(calls),
            layers=levels,
            scopes=[scope_of[call.scope] for call in calls],
            entries=[level == module and call.scope != 0 for level, call in zip(levels, calls, strict=True)],
            keys=self._keys(calls, labels, index_of),
            inputs=[(self._scalars[call.scalars], facts) for call, facts in zip(calls, inputs, strict=True)],
            links=[index_of.get(call.link, -1) if call.link >= 0 else -1 for call in calls],
            replays=[bool(call.flags & RECOMPUTE) for call in calls],
            labels=labels,
            tree=tree,
            anchor_inputs=evidence.anchor_inputs,
            names=evidence.names,
            flow=evidence.flow,
        )
        return Side(
            recorded=recorded,
            calls=calls,
            index_of=index_of,
            scope_of=scope_of,
            scope_paths=paths,
            origin_names=self._origins,
            scalar_facts=self._scalars,
            kind_words=kinds,
            input_facts=inputs,
            output_facts=outputs,
            records=records,
        )

    def _ignored(self, call: Call, module: str) -> bool:
        if not self._settings.ignore:
            return False
        site = self._recorded.sites.get(call.site)
        return self._settings.ignores(module, self._recorded.functions[call.function].name, site.file if site else "")

    def _streams(self, calls: Iterable[Call]) -> list[Hashable]:
        contexts, names = self._recorded.contexts, self._recorded.names
        seen: dict[tuple[int, int], int] = {}
        found: list[Hashable] = []
        for call in calls:
            pair = (call.context, call.thread)
            if pair not in seen:
                c = contexts[call.context]
                microbatch = -1 if c.phase is Phase.OPTIMIZER else c.microbatch  # it steps over all of them at once
                seen[pair] = self._streams_of((c.step, microbatch, c.phase.value, names.get(call.thread, "")))
            found.append(seen[pair])
        return found

    def _keys(self, calls: list[Call], labels: list[str], index_of: dict[int, int]) -> list[Hashable]:
        """A call's key. The line that called a module is no site of its own for what happens inside (CP-1)."""
        seen: dict[tuple[int, int], int] = {}
        module = LEVELS[Level.MODULE]
        found: list[Hashable] = []
        for call, label in zip(calls, labels, strict=True):
            function = self._functions[call.function]
            site = call.site
            if function[0] == module or label or call.link >= 0:
                site = -1
            elif call.parent >= 0 and (place := index_of.get(call.parent)) is not None and calls[place].site == site:
                site = -2
            key = seen.get((call.function, site))
            if key is None:
                key = seen[call.function, site] = self._key_of((function, self._sites.get(site, site)))
            found.append(key)
        return found

    def _label(self, call: Call) -> str:
        if call.node < 0:
            return ""
        text = self._recorded.names[call.node]
        return self._settings.spelled(text[len(ACCUMULATE) :]) if text.startswith(ACCUMULATE) else ""

    def _scopes(self) -> tuple[dict[int, int], Scopes, list[str]]:
        """The scope tree with names spelled alike; a stripped wrapper falls into one with its module."""
        scope_of, parents, names, facts = {0: 0}, [0], [""], [""]
        for scope in self._recorded.scopes.values():
            name = self._settings.spelled(scope.module)
            parent = scope_of[scope.parent]
            if name != scope.module and parent and names[parent] == name:
                scope_of[scope.id] = parent
                facts[parent] = scope.cls
                continue
            scope_of[scope.id] = len(names)
            parents.append(parent)
            names.append(name)
            facts.append(scope.cls)
        return scope_of, Scopes(parents=parents, names=names, facts=facts), names


class _Evidence:
    """What the engine may ask about one call's inputs."""

    def __init__(
        self,
        recorded: Recorded,
        calls: list[Call],
        index_of: dict[int, int],
        *,
        inputs: list[tuple[SlotFact, ...]],
        origins: dict[int, str],
        scalars: dict[int, int],
    ) -> None:
        self._recorded = recorded
        self._calls = calls
        self._index_of = index_of
        self._inputs = inputs
        self._origins = origins
        self._scalars = scalars

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
        """The parameters, buffers and optimizer states that a call consumes."""
        named: list[str] = []
        for slot in self._calls[i].inputs:
            if isinstance(slot.source, int) and slot.source >= 0:
                kind = self._recorded.origins[slot.source].kind
                if kind in OWNED:
                    named.append(self._origins[slot.source])
        return tuple(named)

    def flow(self, i: int) -> tuple[Flow, ...]:
        """Where each input comes from (CP-20)."""
        return tuple([self._flow(slot) for slot in self._calls[i].inputs])

    def _flow(self, slot: Slot) -> Flow:
        source = slot.source
        if not isinstance(source, int):
            maker = self._index_of.get(source[0])
            return None if maker is None else Made(maker, source[1])
        if source < 0:
            return None
        origin = self._recorded.origins[source]
        return self._origins[source] if origin.kind in NAMED_ORIGINS and origin.name else None
