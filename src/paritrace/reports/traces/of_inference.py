"""The trace of an inference run: requests, iterations, device and host work, losses, memberships as arrows (IN-19)."""

from collections import Counter
from pathlib import Path

from msgspec import Struct

from paritrace.errors import EvidenceError
from paritrace.files import LOCAL, Files
from paritrace.files.opened import OpenedFile
from paritrace.inference.artifact import ARTIFACT_NAME, Events, Place, head_of, place_of
from paritrace.inference.records import Activity, Iteration, Loss, Request, Stage
from paritrace.inference.rereading import Rereading
from paritrace.reports.formats import Cut, Sink
from paritrace.reports.traces.events import Event, Tally
from paritrace.reports.traces.identities import number_of
from paritrace.reports.traces.inference_events import event_of, loss_event, path_of
from paritrace.reports.traces.inference_rows import Columns, Found, Owner, Timed, found_in
from paritrace.reports.traces.time_lines import MOST_NS, TimeLines, time_lines
from paritrace.reports.traces.writing import Of, RankTrace
from paritrace.runs.envelope import JOURNAL_NAME

NO_STEP = 0


class Drawn(Struct, frozen=True):
    """What a trace holds. `clocks`: time lines; `arrows`: memberships shown; `unjoined`: others, by why not.

    `uncertainties_ns`: by time line, how surely its clocks are aligned; 0 where it has one clock.
    """

    parts: tuple[Tally, ...]
    clocks: tuple[tuple[str, ...], ...]
    uncertainties_ns: tuple[int, ...]
    arrows: int
    unjoined: dict[str, int]
    unused_alignments: tuple[str, ...]


class Beside(Struct, frozen=True):
    """Calls of the same run stand in a trace already: what was read of the evidence, and where its clocks lie then.

    `num_processes`: synthetic process ids that are taken.
    """

    found: Found
    lines: TimeLines
    num_processes: int


def has_evidence_alone(folder: Path, /) -> bool:
    """Say whether a run has inference evidence and no calls: its trace is that of the evidence."""
    return (folder / ARTIFACT_NAME).is_file() and not any(folder.rglob(JOURNAL_NAME))


def write_inference(
    path: Path,
    sink: Sink,
    /,
    *,
    cut: Cut = Cut(),  # noqa: B008  frozen
    most_in_all: int | None = None,
    beside: Beside | None = None,
    files: Files = LOCAL,
) -> Drawn:
    """Writes the trace of an artifact, named by itself or by its run directory; one part for each process.

    Args:
        most_in_all: events of all processes, shared out among them evenly, in place of `cut`.
        beside: calls of the run that the trace holds already.

    The artifact is read twice: 40 bytes are held of an event, 24 of a link, and of a membership its record.

    Raises:
        EvidenceError, HostError: Refused: as reading the artifact; `times_too_far_apart`.
    """
    place = place_of(path)
    head = head_of(place, files=files)
    found = found_in(Events(place, files=files)) if beside is None else beside.found
    if not found.owners:
        found.owner(head.context)  # a trace of nothing is a whole trace too
    if beside is None:
        lines = time_lines(found.spans, alignments=found.alignments, leading=found.leading)
    else:
        lines = beside.lines
    _require_short(place, found, lines)
    arrows = _Arrows(found, source=head.context.facts.run_id)
    writer = _Writer(place, found, lines, arrows, first=0 if beside is None else beside.num_processes)
    if most_in_all is not None:
        cut = Cut(max_events=max(1, most_in_all // len(found.owners)))
    with files.opened(place.path) as opened:
        parts = tuple(writer.write(owner, nth, sink, opened, cut=cut) for nth, owner in enumerate(writer.order()))
    return Drawn(
        parts=parts,
        clocks=tuple(tuple(sorted(line.offsets)) for line in lines.lines),
        uncertainties_ns=tuple(line.uncertainty_ns for line in lines.lines),
        arrows=arrows.number,
        unjoined=dict(arrows.unjoined),
        unused_alignments=lines.unused,
    )


class _Arrows:
    """Memberships as flows: only those whose request and iteration were reported."""

    def __init__(self, found: Found, *, source: str) -> None:
        self.of_row: dict[int, list[int]] = {}
        self.number = 0
        self.unjoined: Counter[str] = Counter()
        for one in found.members:
            attempts = found.attempts.get(one.request_ref, {})
            request = attempts.get(one.attempt_ref)
            if request is None and one.attempt_ref is None and len(attempts) == 1:
                request = next(iter(attempts.values()))
            iteration = found.iterations.get(one.iteration_ref)
            if request is None:
                self.unjoined["which attempt is not told" if attempts else "request not reported"] += 1
            elif iteration is None:
                self.unjoined["iteration not reported"] += 1
            else:
                self._join(number_of("membership", source, one.event_id), request, iteration)

    def _join(self, flow: int, request: int, iteration: int) -> None:
        self.number += 1
        self.of_row.setdefault(request, []).append(flow)
        self.of_row.setdefault(iteration, []).append(flow)


class _Writer:
    """Writes the processes of one artifact."""

    def __init__(self, place: Place, found: Found, lines: TimeLines, arrows: _Arrows, *, first: int) -> None:
        self._place = place
        self._first = first
        self._found = found
        self._lines = lines
        self._arrows = arrows
        self._columns: Columns = found.columns()
        self._line_of = {clock: nth for nth, line in enumerate(lines.lines) for clock in line.offsets}

    def order(self) -> list[Owner]:
        """Return the processes, those of one time line together; those without any time last."""
        last = len(self._lines.lines)
        return sorted(self._found.owners, key=lambda owner: (self._line_of.get(owner.clock, last), owner))

    def write(self, owner: Owner, nth: int, sink: Sink, opened: OpenedFile, *, cut: Cut) -> Tally:
        """Write one process as a part of its own."""
        trace = RankTrace(self._of(owner, nth), sink, cut=cut)
        again = Rereading(self._place, opened, self._found.contexts)
        line = self._line_of.get(owner.clock)
        offset = 0 if line is None else self._lines.lines[line].offsets[owner.clock]
        number = self._found.owners[owner]
        for row in self._columns.of(number).tolist():
            event = _timed(again, int(self._columns.offsets[row]), int(self._columns.sizes[row]))
            said = self._found.links.of(event.activity_ref) if isinstance(event, Activity) else ()
            shown = event_of(event, said, offset=offset, flows=tuple(self._arrows.of_row.get(row, ())))
            trace.call(path_of(event, said), shown, step=NO_STEP)
        for loss in self._losses(number):
            trace.instant(("losses",), loss_event(loss))
        if len(self._lines.lines) > 1:
            trace.instant(("losses",), Event(-1, -1, self._apart(owner), category="clock"))
        return trace.close()

    def _losses(self, number: int) -> list[Loss]:
        return [loss for loss in self._found.losses if self._found.owner(loss.context) == number]

    def _of(self, owner: Owner, nth: int) -> Of:
        pid, rank = owner.pid or "not told", owner.rank or "not told"
        several = len(self._lines.lines) > 1
        line = self._line_of.get(owner.clock)
        clock = "" if not several else " · no times" if line is None else f" · clock {line + 1} (not aligned)"
        return Of(
            source=owner.run_id,
            rank=self._first + nth,
            name=f"{owner.run_id} · {owner.host or 'host not told'} · rank {rank} · pid {pid}{clock}",
            labels=(f"clock {owner.clock}", *self._aligned(owner), *((self._apart(owner),) if several else ())),
            facts={
                "of": "inference",
                "run": owner.run_id,
                "host": owner.host,
                "rank": owner.rank,
                "pid": owner.pid,
                "clock": owner.clock,
                "time_lines": str(len(self._lines.lines)),
                "zero_ns": str(-self._lines.lines[line].offsets[owner.clock]) if line is not None else "",
                "uncertainty_ns": "" if line is None else str(self._lines.lines[line].uncertainty_ns),
                "unused_alignments": "; ".join(self._lines.unused),
            },
        )

    def _aligned(self, owner: Owner) -> tuple[str, ...]:
        line = self._line_of.get(owner.clock)
        if line is None or len(self._lines.lines[line].offsets) < 2:
            return ()
        found = self._lines.lines[line]
        return (f"one time line of {len(found.offsets)} clocks, aligned by records within {found.uncertainty_ns:,} ns",)

    def _apart(self, owner: Owner) -> str:
        line = self._line_of.get(owner.clock)
        if line is None:
            return "no event of this clock has a time"
        return (
            f"time line {line + 1} of {len(self._lines.lines)}: no record aligns its clock with another line's;"
            " lines stand one behind the other, and times are not compared"
        )


def _timed(again: Rereading, offset: int, size: int) -> Timed:
    event = again.read(offset, size)
    if not isinstance(event, Request | Iteration | Stage | Activity):
        raise again.changed(offset)
    return event


def _require_short(place: Place, found: Found, lines: TimeLines) -> None:
    """Refuse times so far apart that the format would show others."""
    for line in lines.lines:
        held = (found.spans[clock].last_ns + at for clock, at in line.offsets.items() if clock in found.spans)
        last = max(held, default=0)
        if last > MOST_NS:
            raise EvidenceError(
                f"{place.path} holds times that are {last:,} ns apart, over {len(lines.lines)} time lines",
                code="times_too_far_apart",
                fix="a trace counts to 2^62 ns: look for a time that its source wrote wrong",
            )
