"""The trace of a run: one file's rank at a time, its calls, steps, losses, and collectives across ranks (SU-8)."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from paritrace.compare.checks_collectives import POINT_TO_POINT
from paritrace.compare.load import Recorded, load
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import Call, Flag, Kind, Level, Slot
from paritrace.evidence.gaps import Gap
from paritrace.reports.formats import Cut, Sink
from paritrace.reports.traces.events import Arguments, Event, Tally, Value
from paritrace.reports.traces.identities import number_of
from paritrace.reports.traces.marks import marks_of, write_marks
from paritrace.reports.traces.packets import Packets
from paritrace.reports.traces.writing import Of, Pack, RankTrace
from paritrace.reports.traces.zero import Zero, calling, labels_of, zero_of
from paritrace.runs.reading import Run

CALLS = "calls"
FLAGS = {
    Flag.RECOMPUTE: "recompute",
    Flag.RAISED: "raised",
    Flag.COMPILED: "compiled",
    Flag.LINK_AMBIGUOUS: "ambiguous",
}


class Note(Struct, frozen=True):
    """Something that is said of a run, at a call of it or, where `record_id` is -1, at the begin of a step."""

    rank: int
    record_id: int
    step: int
    name: str
    arguments: Arguments = ()


def ranks_of(run: Run, /) -> tuple[int, ...]:
    """Returns the ranks that left a session that may have calls, in order."""
    return tuple(sorted({view.rank for view in calling(run)}))


def write_run(run: Run, sink: Sink, /, *, cut: Cut, notes: Sequence[Note] = (), pack: Pack = Packets) -> list[Tally]:
    """Writes the trace of every rank that is not cut off, one behind the other, and returns what each holds."""
    return [trace.tally for trace in write_ranks(run, sink, zero=zero_of(run), cut=cut, notes=notes, pack=pack)]


def write_ranks(
    run: Run, sink: Sink, /, *, zero: Zero, cut: Cut, notes: Sequence[Note] = (), pack: Pack = Packets
) -> list[RankTrace]:
    """Writes as `write_run`, the sessions lying where `zero` says, and returns the closed traces of the ranks."""
    ranks = [rank for rank in ranks_of(run) if cut.ranks is None or rank in cut.ranks]
    by_rank = {rank: [note for note in notes if note.rank == rank] for rank in ranks}
    return [_write_rank(run, rank, sink, zero=zero, cut=cut, notes=by_rank[rank], pack=pack) for rank in ranks]


def _write_rank(  # noqa: PLR0913  what one rank is written by
    run: Run, rank: int, sink: Sink, *, zero: Zero, cut: Cut, notes: Sequence[Note], pack: Pack
) -> RankTrace:
    sessions = [view for view in calling(run) if view.rank == rank]
    of = Of(
        source=run.digest,
        rank=rank,
        zero_unix_ns=zero.unix_ns,
        labels=labels_of(sessions, zero),
        facts={"of": "run", "run": run.run_id, "digest": run.digest},
    )
    trace = RankTrace(of, sink, cut=cut, pack=pack)
    for nth, view in enumerate(sessions):
        told = notes if nth == 0 else ()
        recorded = load(run, view, settings=Settings())
        path = (CALLS,) if len(sessions) == 1 else (f"restart {view.incarnation}", CALLS)
        _Session(recorded, path, zero.offsets[view.session_id], source=run.digest).write(trace, told, cut=cut)
    trace.close()
    return trace


class _Session:
    """One session's calls as events."""

    def __init__(self, recorded: Recorded, path: tuple[str, ...], offset: int, *, source: str) -> None:
        self._of = recorded
        self._path = path
        self._offset = offset
        self._flows = _flows(recorded, source=source)
        self._slots: dict[tuple[str, int, int], tuple[str, str]] = {}

    def write(self, trace: RankTrace, notes: Sequence[Note], *, cut: Cut) -> None:
        of = self._of
        at_calls: dict[int, list[Note]] = {}
        for note in notes:
            at_calls.setdefault(note.record_id, []).append(note)
        threads: dict[int, tuple[str, ...]] = {}
        for call in of.calls:
            path = threads.get(call.thread)
            if path is None:
                path = threads[call.thread] = (*self._path, of.names.get(call.thread, "main"))
            step = of.contexts[call.context].step
            trace.call(path, self.event(call), step=step)
            for note in at_calls.get(call.id, ()):
                trace.instant(("findings",), _noted(note, self._offset + call.start_ns))
        for note in at_calls.get(-1, ()):
            trace.instant(("findings",), _noted(note, self._begin_of(note.step)))
        write_marks(trace, marks_of([*of.steps, *of.losses], cut=cut), path=(), offset=self._offset)

    def _begin_of(self, step: int) -> int:
        return next((self._offset + mark.started_ns for mark in self._of.steps if mark.step == step), self._offset)

    def event(self, call: Call) -> Event:
        """A call with its place, context and tensors."""
        of = self._of
        function = of.functions[call.function]
        site = of.sites[call.site]
        scope = of.scopes.get(call.scope)
        module = "" if scope is None else scope.module
        return Event(
            start_ns=self._offset + call.start_ns if call.start_ns >= 0 else -1,
            duration_ns=call.duration_ns,
            name=module_or_function(function.level, module=module, function=function.name),
            category=function.level.value,
            file=site.file,
            function=site.function,
            line=site.line,
            words=(("phase", of.contexts[call.context].phase.value), ("module", module), ("called", function.name)),
            arguments=tuple(self._arguments(call)),
            flows=self._flows.get(call.id, ()),
        )

    def _arguments(self, call: Call) -> Iterator[tuple[str, Value]]:
        context = self._of.contexts[call.context]
        yield "record_id", call.id
        yield "step", context.step
        yield "microbatch", context.microbatch
        if call.link >= 0:
            yield "forward_call", call.link
        for flag, word in FLAGS.items():
            if call.flags & flag:
                yield word, True
        collective = self._of.distributed.collectives.get(call.id)
        if collective is not None:
            yield "collective", f"{collective.operation} of {self._of.distributed.groups[collective.group].key}"
            yield "link", "same group and number"  # the members' own account: nobody has looked at it
            yield "validation", "unreviewed"
        for direction, slots in (("in", call.inputs), ("out", call.outputs)):
            for slot in slots:
                yield self._slot(direction, slot)

    def _slot(self, direction: str, slot: Slot) -> tuple[str, str]:
        """The name and, in one text, dtype, shape and fingerprint (hex) of a tensor."""
        known = self._slots.get((direction, slot.name, slot.kind))
        if known is None:
            name = f"{direction} {self._of.names[slot.name]}"
            known = self._slots[direction, slot.name, slot.kind] = name, tensor_text(self._of.kinds[slot.kind])
        bits = f"no bits: {slot.bits.gap}" if isinstance(slot.bits, Gap) else slot.bits
        return known[0], f"{known[1]} {bits}"


def _flows(of: Recorded, *, source: str) -> dict[int, tuple[int, ...]]:
    """By call the flow of a collective: the members of its group number it alike, leaving point-to-point calls out."""
    seen: dict[int, int] = {}
    flows: dict[int, tuple[int, ...]] = {}
    for identity, collective in sorted(of.distributed.collectives.items()):
        group = of.distributed.groups.get(collective.group)
        if group is None or collective.operation in POINT_TO_POINT:
            continue
        nth = seen[collective.group] = seen.get(collective.group, -1) + 1
        which = (of.session.incarnation, group.key, *group.ranks, nth, collective.operation)
        flows[identity] = (number_of("collective", source, *which),)
    return flows


def module_or_function(level: str, /, *, module: str, function: str) -> str:
    """Returns what a slice is called: at level module the module's name, else the operator's."""
    return (module or "the root module") if level == Level.MODULE else function


def tensor_text(kind: Kind, /) -> str:
    """Returns dtype and shape as engineers write them: `float32[2, 16]`."""
    return f"{kind.dtype}{list(kind.shape)}"


def _noted(note: Note, at: int) -> Event:
    return Event(at, -1, note.name, category="finding", arguments=note.arguments)
