"""Translating recorded calls into the engine's neutral records, spelled alike on both sides (CP-1, CP-6)."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from paritrace.compare.collective_facts import CollectiveFacts, collective_facts, stream_of
from paritrace.compare.input_evidence import InputEvidence, SlotFact
from paritrace.compare.load import Recorded
from paritrace.compare.renamings import Of
from paritrace.compare.settings import Settings
from paritrace.compare.sites import Lines, site_keys
from paritrace.compare.slots import comparable_kind
from paritrace.correspondence.records import Records, Scopes
from paritrace.evidence.calls import Call, Flag, Level, Origin

ACCUMULATE = "AccumulateGrad:"
RECOMPUTE = Flag.RECOMPUTE.value  # a plain number: once per call, an enum costs more than the comparison
LEVELS = {level: place for place, level in enumerate(Level)}


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
    collectives: dict[int, CollectiveFacts] = field(default_factory=dict[int, CollectiveFacts])  # by index
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
    ours = settings.seen_from("baseline", baseline.session.rank)
    theirs = settings.seen_from("candidate", candidate.session.rank)
    reading = (partial(ours.read_as, of=Of.FILE), partial(theirs.read_as, of=Of.FILE))
    sites = site_keys(baseline.sites, candidate.sites, lines=lines, reading=reading)
    words = (Interner(), Interner(), Interner(), Interner())
    return (
        _Translator(baseline, sites.baseline, settings=ours, words=words).side(),
        _Translator(candidate, sites.candidate, settings=theirs, words=words).side(),
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
        self._functions = {
            f.id: (LEVELS[f.level], settings.read_as(f.name, of=Of.FUNCTION)) for f in recorded.functions.values()
        }
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
        collectives = self._collectives(calls)
        evidence = InputEvidence(
            recorded,
            calls,
            index_of,
            inputs=inputs,
            words=(self._origins, self._scalars),
            collectives=collectives,
        )
        levels = [self._functions[call.function][0] for call in calls]
        module = LEVELS[Level.MODULE]
        labels = [self._label(call, collectives.get(i)) for i, call in enumerate(calls)]
        records = Records(
            streams=self._streams(calls, collectives),
            layers=levels,
            scopes=[scope_of[call.scope] for call in calls],
            entries=[level == module and call.scope != 0 for level, call in zip(levels, calls, strict=True)],
            keys=self._keys(calls, labels, index_of, collectives=collectives),
            inputs=[(self._scalars[call.scalars], facts) for call, facts in zip(calls, inputs, strict=True)],
            links=[index_of.get(call.link, -1) if call.link >= 0 else -1 for call in calls],
            replays=[bool(call.flags & RECOMPUTE) for call in calls],
            labels=labels,
            tree=tree,
            anchor_inputs=evidence.anchor_inputs,
            names=evidence.names,
            flow=evidence.flow,
            wider=evidence.wider,
            declared=self._declared(calls, labels),
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
            collectives=collectives,
            records=records,
        )

    def _ignored(self, call: Call, module: str) -> bool:
        if not self._settings.ignore:
            return False
        site = self._recorded.sites.get(call.site)
        return self._settings.ignores(module, self._recorded.functions[call.function].name, site.file if site else "")

    def _collectives(self, calls: list[Call]) -> dict[int, CollectiveFacts]:
        distributed = self._recorded.distributed
        if not distributed.collectives:
            return {}
        found = ((i, collective_facts(distributed, call, settings=self._settings)) for i, call in enumerate(calls))
        return {i: facts for i, facts in found if facts is not None}

    def _streams(self, calls: Iterable[Call], collectives: Mapping[int, CollectiveFacts]) -> list[Hashable]:
        contexts, names, rank = self._recorded.contexts, self._recorded.names, self._recorded.session.rank
        seen: dict[tuple[int, int], int] = {}
        found: list[Hashable] = []
        for i, call in enumerate(calls):
            pair = (call.context, call.thread)
            facts = collectives.get(i)
            stream = seen.get(pair) if facts is None else None
            if stream is None:
                c = contexts[call.context]
                moment, thread = (c.step, c.microbatch, c.phase.value), names.get(call.thread, "")
                stream = self._streams_of(stream_of(facts, rank=rank, moment=moment, thread=thread))
                if facts is None:
                    seen[pair] = stream
            found.append(stream)
        return found

    def _keys(
        self,
        calls: list[Call],
        labels: list[str],
        index_of: dict[int, int],
        *,
        collectives: Mapping[int, CollectiveFacts],
    ) -> list[Hashable]:
        """A call's key. The line that called a module is no site of its own for what happens inside (CP-1).

        A collective is known by its operation, whichever of torch's functions ran it.
        """
        seen: dict[tuple[Hashable, int], int] = {}
        module = LEVELS[Level.MODULE]
        found: list[Hashable] = []
        for i, (call, label) in enumerate(zip(calls, labels, strict=True)):
            function = self._functions[call.function]
            facts = collectives.get(i)
            site = call.site
            if function[0] == module or label or call.link >= 0:
                site = -1
            elif call.parent >= 0 and (place := index_of.get(call.parent)) is not None and calls[place].site == site:
                site = -2
            what = call.function if facts is None else facts.operation
            key = seen.get((what, site))
            if key is None:
                named = function if facts is None else (function[0], "collective", facts.operation)
                key = seen[what, site] = self._key_of((named, self._sites.get(site, site)))
            found.append(key)
        return found

    def _declared(self, calls: list[Call], labels: list[str]) -> frozenset[int]:
        """The calls whose own module, file, function or parameter a declared map reads otherwise (CP-5)."""
        settings, recorded = self._settings, self._recorded
        if not settings.renamings:
            return frozenset()
        functions = {f.id for f in recorded.functions.values() if settings.is_declared(f.name, of=Of.FUNCTION)}
        scopes = {s.id for s in recorded.scopes.values() if settings.is_declared(s.module, of=Of.MODULE)}
        sites = {s.id for s in recorded.sites.values() if settings.is_declared(s.file, of=Of.FILE)}
        module = LEVELS[Level.MODULE]
        return frozenset(
            i
            for i, call in enumerate(calls)
            if call.function in functions
            or (call.scope in scopes and self._functions[call.function][0] == module)
            or (call.site in sites and call.link < 0 and self._functions[call.function][0] != module)
            or (labels[i] and settings.is_declared(self._node_parameter(call), of=Of.MODULE))
        )

    def _label(self, call: Call, facts: CollectiveFacts | None) -> str:
        if facts is not None and facts.label:
            return facts.label
        name = self._node_parameter(call)
        return self._settings.spelled(name) if name else ""

    def _node_parameter(self, call: Call) -> str:
        """The parameter that an accumulation of gradients is of, as it was recorded; "" of anything else."""
        text = self._recorded.names[call.node] if call.node >= 0 else ""
        return text.removeprefix(ACCUMULATE) if text.startswith(ACCUMULATE) else ""

    def _scopes(self) -> tuple[dict[int, int], Scopes, list[str]]:
        """The scope tree with names spelled alike; a wrapper falls into one with its module.

        A wrapper bears the name of its module: by the prefix that was stripped here, or since the capture left it out.
        A module that calls itself does, too, and is told by its class.
        """
        scope_of, parents, names, facts = {0: 0}, [0], [""], [""]
        for scope in self._recorded.scopes.values():
            name = self._settings.spelled(scope.module)
            parent = scope_of[scope.parent]
            wrapped = name != scope.module or facts[parent] != scope.cls
            if wrapped and parent and names[parent] == name:
                scope_of[scope.id] = parent
                facts[parent] = scope.cls
                continue
            scope_of[scope.id] = len(names)
            parents.append(parent)
            names.append(name)
            facts.append(scope.cls)
        return scope_of, Scopes(parents=parents, names=names, facts=facts), names
