"""Translating recorded calls into the engine's neutral records, spelled alike on both sides (CP-1, CP-6)."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from paritrace.compare.call_columns import CallColumns
from paritrace.compare.collective_facts import CollectiveFacts, collective_facts, stream_of
from paritrace.compare.input_evidence import InputEvidence
from paritrace.compare.load import Recorded
from paritrace.compare.lookups import IdIndex, Interner, compact, looked_up, pairs_of
from paritrace.compare.renamings import Of
from paritrace.compare.settings import Settings
from paritrace.compare.sites import Lines, site_keys
from paritrace.compare.slot_words import Numbers, SlotWords, slot_words
from paritrace.compare.slots import comparable_kind
from paritrace.correspondence.coded import CodedTexts
from paritrace.correspondence.records import Records, Scopes
from paritrace.evidence.calls import Call, Flag, Level, Origin

ACCUMULATE = "AccumulateGrad:"
RECOMPUTE = Flag.RECOMPUTE.value  # a plain number: once per call, an enum costs more than the comparison
LEVELS = {level: place for place, level in enumerate(Level)}


@dataclass(slots=True, kw_only=True)
class Side:
    """One session's calls as the comparison uses them: columns by index, in execution order."""

    recorded: Recorded
    calls: CallColumns
    index_of: IdIndex
    scope_of: dict[int, int]  # scope id -> index in `scope_paths`
    scope_paths: list[str]
    origin_names: dict[int, str]
    scalar_facts: dict[int, int]
    kind_words: dict[int, int]  # kind id -> number of what makes fingerprints comparable, the same on both sides
    words: SlotWords
    told: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])  # calls in words, kept
    collectives: dict[int, CollectiveFacts] = field(default_factory=dict[int, CollectiveFacts])  # by index
    records: Records

    def context_of(self, i: int) -> tuple[int, int, str]:
        """Step, micro-batch and phase of a call."""
        context = self.recorded.contexts[self.calls.values("context")[i]]
        return context.step, context.microbatch, context.phase.value

    def steps_with_operators(self) -> set[int]:
        """The steps of which operators were recorded."""
        used, _ = pairs_of(self.calls.column("context"), np.array(self.records.layers, dtype=np.int64))
        return {self.recorded.contexts[context].step for context, layer in used if layer == LEVELS[Level.OP]}

    def level_of(self, i: int) -> Level:
        return self.recorded.functions[self.calls.values("function")[i]].level

    def module_of(self, i: int) -> str:
        return self.scope_paths[self.scope_of[self.calls.values("scope")[i]]]


def translate(baseline: Recorded, candidate: Recorded, *, settings: Settings, lines: Lines) -> tuple[Side, Side]:
    """Translate both sides together, so that equal things get equal words."""
    ours = settings.seen_from("baseline", baseline.session.rank)
    theirs = settings.seen_from("candidate", candidate.session.rank)
    reading = (partial(ours.read_as, of=Of.FILE), partial(theirs.read_as, of=Of.FILE))
    sites = site_keys(baseline.sites, candidate.sites, lines=lines, reading=reading)
    words = (Interner(), Interner(), Interner(), Interner(), Interner(), Interner())
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
        words: tuple[Interner, Interner, Interner, Interner, Interner, Interner],
    ) -> None:
        self._recorded = recorded
        self._settings = settings
        self._key_of, streams, kinds, scalars, self._odd, self._owned = words
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
        calls = self._wanted(paths, scope_of)
        index_of = IdIndex(calls.column("id"))
        words = slot_words(calls, names=self._names, kinds=self._kinds, scalars=self._scalars, odd=self._odd)
        collectives = self._collectives(calls, index_of)
        evidence = InputEvidence(recorded, calls, index_of, words=words, origins=self._origins, collectives=collectives)
        levels = looked_up(calls.column("function"), {number: level for number, (level, _) in self._functions.items()})
        scopes, links = calls.column("scope"), calls.column("link")
        labels = self._labels(calls, collectives)
        records = Records(
            streams=self._streams(calls, collectives),
            layers=compact(levels, "b"),
            scopes=compact(looked_up(scopes, scope_of), "i"),
            entries=compact((levels == LEVELS[Level.MODULE]) & (scopes != 0), "b"),
            keys=self._keys(calls, labels, index_of, levels=levels, collectives=collectives),
            inputs=evidence.fingerprints,
            links=compact(np.where(links >= 0, index_of.places(links), -1), "i"),
            replays=compact((calls.column("flags") & RECOMPUTE) != 0, "b"),
            labels=labels,
            tree=tree,
            anchor_inputs=evidence.anchor_inputs,
            names=evidence.names,
            flow=evidence.flow,
            wider=evidence.wider,
            declared=self._declared(calls, labels),
            anchored=evidence.anchored,
            named=evidence.name_words(self._owned),
        )
        return Side(
            recorded=recorded,
            calls=calls,
            index_of=index_of,
            scope_of=scope_of,
            scope_paths=paths,
            origin_names=self._origins,
            scalar_facts=self._scalars,
            kind_words=self._kinds,
            words=words,
            collectives=collectives,
            records=records,
        )

    def _wanted(self, paths: list[str], scope_of: dict[int, int]) -> CallColumns:
        """The calls that no pattern leaves out."""
        calls = self._recorded.calls
        if not self._settings.ignore:
            return calls
        return calls.where(np.array([not self._ignored(call, paths[scope_of[call.scope]]) for call in calls], bool))

    def _ignored(self, call: Call, module: str) -> bool:
        if not self._settings.ignore:
            return False
        site = self._recorded.sites.get(call.site)
        return self._settings.ignores(module, self._recorded.functions[call.function].name, site.file if site else "")

    def _collectives(self, calls: CallColumns, index_of: IdIndex) -> dict[int, CollectiveFacts]:
        distributed = self._recorded.distributed
        places = (index_of.get(number) for number in distributed.collectives)
        known: list[int] = sorted({place for place in places if place is not None})
        found = ((i, collective_facts(distributed, calls[i], settings=self._settings)) for i in known)
        return {i: facts for i, facts in found if facts is not None}

    def _streams(self, calls: CallColumns, collectives: Mapping[int, CollectiveFacts]) -> Sequence[int]:
        pairs, where = pairs_of(calls.column("context"), calls.column("thread"))
        plain = np.array([self._stream(context, thread, None) for context, thread in pairs], dtype=np.int64)
        found = compact(plain[where] if pairs else where, "i")
        for i, facts in collectives.items():
            found[i] = self._stream(calls[i].context, calls[i].thread, facts)
        return found

    def _stream(self, context: int, thread: int, facts: CollectiveFacts | None) -> int:
        c = self._recorded.contexts[context]
        moment, name = (c.step, c.microbatch, c.phase.value), self._recorded.names.get(thread, "")
        return self._streams_of(stream_of(facts, rank=self._recorded.session.rank, moment=moment, thread=name))

    def _keys(
        self,
        calls: CallColumns,
        labels: CodedTexts,
        index_of: IdIndex,
        *,
        levels: Numbers,
        collectives: Mapping[int, CollectiveFacts],
    ) -> Sequence[int]:
        """A call's key. The line that called a module is no site of its own for what happens inside (CP-1).

        A collective is known by its operation, whichever of torch's functions ran it.
        """
        sites, parents = calls.column("site").astype(np.int64), calls.column("parent")
        places = np.where(parents >= 0, index_of.places(parents), -1)
        inside = (places >= 0) & (sites[places] == sites) if len(sites) else places >= 0
        nowhere = (levels == LEVELS[Level.MODULE]) | (labels.codes != 0) | (calls.column("link") >= 0)
        used = np.where(nowhere, -1, np.where(inside, -2, sites))
        pairs, where = pairs_of(calls.column("function"), used)
        plain = np.array([self._key(self._functions[function], site) for function, site in pairs], dtype=np.int64)
        found = compact(plain[where] if pairs else where, "i")
        for i, facts in collectives.items():
            found[i] = self._key((int(levels[i]), "collective", facts.operation), int(used[i]))
        return found

    def _key(self, what: Hashable, site: int) -> int:
        return self._key_of((what, self._sites.get(site, site)))

    def _declared(self, calls: CallColumns, labels: CodedTexts) -> frozenset[int]:
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

    def _labels(self, calls: CallColumns, collectives: Mapping[int, CollectiveFacts]) -> CodedTexts:
        """What alone decides the pair of a call, or "" (CP-2a)."""
        nodes = sorted(set(calls.distinct("node")))
        texts = [self._settings.spelled(name) if (name := self._parameter_of(node)) else "" for node in nodes]
        found = CodedTexts(texts, np.searchsorted(nodes, calls.column("node")))
        for i, facts in collectives.items():
            if facts.label:
                found[i] = facts.label
        return found

    def _node_parameter(self, call: Call) -> str:
        """The parameter that an accumulation of gradients is of, as it was recorded; "" of anything else."""
        return self._parameter_of(call.node)

    def _parameter_of(self, node: int) -> str:
        text = self._recorded.names[node] if node >= 0 else ""
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
