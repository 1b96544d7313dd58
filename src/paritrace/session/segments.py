"""The rule that reads segments out of a journal: which steps were taken under what, and from which state (SE-15).

A segment holds consecutive steps of one state, taken under one configuration revision, one set of inputs and one
schedule. Stopping and going on under the same does not end it. A load begins a new one, which continues the segment
that its checkpoint was saved in; so the steps that led to a state are a row of pieces, its lineage, and what a load
went back behind stays outside of it.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from msgspec import Struct, field, structs
from msgspec import json as msgspec_json

from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.plain_json import is_object
from paritrace.session.commands import Body
from paritrace.session.journal import Line

_ENCODER = msgspec_json.Encoder(order="sorted")


class End(StrEnum):
    """How the last steps of a segment are known."""

    PARKED = "parked"  # all ranks at one step, by a run's end, a stop or a command
    FAILED = "failed"  # the session failed in it: how many steps were taken after the last agreed one is not known
    OPEN = "open"  # the journal ends in it: it still runs, its coordinator was killed, or it was closed at once


class Begin(StrEnum):
    """Where the state before a segment's first step came from."""

    BUILT = "built"
    CONTINUED = "continued"
    LOADED = "loaded"


class RunSchedule(Struct, frozen=True, forbid_unknown_fields=True):
    """A schedule in force; its offsets count from `from_step`, the first step of its run."""

    digest: str
    from_step: int


class Mark(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A state that is known by its digest: a checkpoint saved, also by itself, before step `step` was taken.

    `content`, `states`: what the journal has of its files and of the workload's own digests, by rank.
    """

    step: int
    digest: str
    name: str
    content: str | None = None
    states: dict[str, str | None] = field(default_factory=dict[str, str | None])


class Capture(Struct, frozen=True, forbid_unknown_fields=True):
    """A capture that was taken in a segment."""

    name: str
    step: int
    steps: int
    level: str


class Segment(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Steps from `first_step` to before `end_step`, which is None where it is not known."""

    number: int
    generation: int
    first_step: int
    end_step: int | None
    end: End
    begin: Begin
    config_revision: int
    first_epoch: int
    last_epoch: int
    inputs_digest: str | None = None
    schedule: RunSchedule | None = None
    continues: int | None = None  # the segment whose state it goes on from; None: built, or not saved in this session
    checkpoint: str | None = None  # name of the one that was loaded
    marks: tuple[Mark, ...] = ()
    captures: tuple[Capture, ...] = ()


class Piece(Struct, frozen=True, forbid_unknown_fields=True):
    """The steps of one segment that lie in a lineage."""

    segment: Segment
    first_step: int
    end_step: int | None

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Marks of the segment that lie in this piece."""
        end = self.end_step
        return tuple(one for one in self.segment.marks if end is None or one.step <= end)


def segments_of(lines: Iterable[Line], /) -> tuple[Segment, ...]:
    """Return the segments of a journal in the order in which they began."""
    reading = _Reading()
    for line in lines:
        reading.take(line)
    reading.close(End.OPEN, step=None)
    return tuple(reading.segments)


def lineage_of(segments: tuple[Segment, ...], number: int | None = None, /) -> tuple[Piece, ...]:
    """Return the pieces that led to the end of a segment, the last one where none is named, in the order of steps."""
    if not segments:
        return ()
    found: list[Piece] = []
    at: int | None = segments[-1].number if number is None else number
    end = segments[-1].end_step if number is None else segments[number].end_step
    while at is not None:
        segment = segments[at]
        found.append(Piece(segment, segment.first_step, end))
        at, end = segment.continues, segment.first_step
    return tuple(piece for piece in reversed(found) if piece.end_step is None or piece.first_step < piece.end_step)


class _Reading:
    """The journal so far. `origin`: where the state comes from that the next step will be taken on."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.running = False
        self.revision = 0
        self.inputs: str | None = None
        self.schedule: RunSchedule | None = None
        self.origin: tuple[Begin, int | None, str | None] | None = (Begin.BUILT, None, None)
        self.saved: dict[str, int | None] = {}
        self.marked: list[Mark] = []  # before the first step of a segment that has not begun

    def take(self, line: Line) -> None:
        facts = line.facts
        match line.what:
            case "opened":
                self.close(End.OPEN, step=None)
            case "generation":
                self._generation(facts)
            case "revision":
                self._revision(facts)
            case "inputs":
                self.inputs = _text(facts.get("digest"))
            case "run":
                self._run(line)
            case "checkpoint":
                self._checkpoint(facts)
            case "capture":
                self._capture(facts)
            case "failure":
                self.close(End.FAILED, step=None)
            case _:
                pass

    def close(self, end: End, *, step: int | None) -> None:
        if self.running:
            self.segments[-1] = structs.replace(self.segments[-1], end=end, end_step=step)
        self.running = False

    def _generation(self, facts: Body) -> None:
        if facts.get("event") == "started":
            self.close(End.OPEN, step=None)
            self.origin, self.inputs, self.marked = (Begin.BUILT, None, None), None, []
        self.inputs = _text(facts.get("inputs_digest")) or self.inputs
        self.revision = _number(facts.get("config_revision"), self.revision)

    def _revision(self, facts: Body) -> None:
        self.revision = _number(facts.get("revision"), self.revision)
        if facts.get("kind") == "rebuild":
            self.origin, self.marked = (Begin.BUILT, None, None), []

    def _run(self, line: Line) -> None:
        facts = line.facts
        step = _number(facts.get("step"), -1)
        if step < 0:
            return
        match facts.get("event"):
            case "admitted":
                given = facts.get("schedule")
                self.schedule = RunSchedule(sha256_hex(_ENCODER.encode(given)), step) if given else None
                self._open(line, step=step)
            case "resumed":
                self._open(line, step=step)
            case "parked" | "ended" | "stopped":
                self.close(End.PARKED, step=step)
            case _:
                pass

    def _open(self, line: Line, *, step: int) -> None:
        revision = _number(line.facts.get("config_revision"), self.revision)
        epoch = _number(line.facts.get("epoch"), 0)
        before = self.segments[-1] if self.segments else None
        self.running = True
        if before is not None and self.origin is None and self._goes_on(before, line, revision=revision, step=step):
            self.segments[-1] = structs.replace(before, last_epoch=epoch, end=End.OPEN, end_step=None)
            return
        begin, continues, name = self.origin or (Begin.CONTINUED, None if before is None else before.number, None)
        self.segments.append(
            Segment(
                number=len(self.segments),
                generation=line.generation,
                first_step=step,
                end_step=None,
                end=End.OPEN,
                begin=begin,
                config_revision=revision,
                first_epoch=epoch,
                last_epoch=epoch,
                inputs_digest=self.inputs,
                schedule=self.schedule,
                continues=continues,
                checkpoint=name,
                marks=tuple(self.marked),
            )
        )
        self.origin, self.marked = None, []

    def _goes_on(self, before: Segment, line: Line, *, revision: int, step: int) -> bool:
        """Whether the next steps belong to the segment before: the same state, under the same conditions."""
        now = (line.generation, revision, self.inputs, self.schedule, step)
        then = (before.generation, before.config_revision, before.inputs_digest, before.schedule, before.end_step)
        return now == then

    def _checkpoint(self, facts: Body) -> None:
        digest, name, step = _text(facts.get("digest")), str(facts.get("name", "")), _number(facts.get("step"), -1)
        if digest is None or step < 0:
            return
        mark = Mark(step, digest, name, _text(facts.get("content")), _states(facts.get("state_digests")))
        if facts.get("event") == "loaded":
            self.origin = (Begin.LOADED, self.saved.get(digest), name)
            self.marked = [mark]
            return
        if self.origin is None and self.segments:
            self.saved[digest] = self.segments[-1].number
            before = self.segments[-1]
            self.segments[-1] = structs.replace(before, marks=(*before.marks, mark))
        else:  # nothing has been stepped since it was built or loaded
            self.saved[digest] = None if self.origin is None else self.origin[1]
            self.marked.append(mark)

    def _capture(self, facts: Body) -> None:
        if not self.segments:
            return
        found = Capture(
            name=str(facts.get("name", "")),
            step=_number(facts.get("step"), self.segments[-1].first_step),
            steps=_number(facts.get("steps"), 0),
            level=str(facts.get("level", "")),
        )
        before = self.segments[-1]
        self.segments[-1] = structs.replace(before, captures=(*before.captures, found))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _states(value: Any) -> dict[str, str | None]:
    return {str(rank): _text(said) for rank, said in value.items()} if is_object(value) else {}


def _number(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
