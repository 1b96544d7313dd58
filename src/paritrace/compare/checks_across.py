"""Gathers what the ranks of one start of a run show of each other, one journal after the other (CP-25, CP-9)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from paritrace.compare.checks_collective_rows import CollectiveRows
from paritrace.compare.checks_collectives import Collectives
from paritrace.compare.checks_heads import Head
from paritrace.compare.checks_inputs import InputRows, Inputs
from paritrace.compare.checks_replicas import Replicas
from paritrace.compare.checks_state_rows import StateRows
from paritrace.compare.checks_states import States
from paritrace.evidence.calls import (
    Call,
    Completed,
    Context,
    JournalHeader,
    Kind,
    LevelMark,
    Origin,
    Row,
    Site,
    State,
    StateNames,
)
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Collective, CollectiveCounts, Group, Placement
from paritrace.evidence.journal import Loss
from paritrace.runs.attendance import Attendance
from paritrace.runs.views import SessionView

Record = Row | Definition | Loss
Seer = Callable[[Any], None]  # each takes one kind of record, by which it is found


class Presence(Struct, frozen=True):
    """Which ranks of the latest start of a run are compared. `cut`: their sessions have no receipt."""

    incarnation: int
    num_expected: int
    ranks: tuple[int, ...]
    missing: tuple[int, ...]
    cut: tuple[int, ...]


class Levels(Struct):
    """Which ranks captured operators, and whether that changed on the way."""

    with_op: int = 0  # bits of ranks
    changed: int = 0


class Across:
    """What the ranks of one start show; `watch` passes on the records of a session and takes what it needs."""

    def __init__(self, heads: Iterable[Head], presence: Presence) -> None:
        self.presence = presence
        self.replicas = Replicas(heads)
        self.states = States(self.replicas)
        self.inputs = Inputs()
        self.collectives = Collectives()
        self.levels = Levels()

    def watch(self, records: Iterable[Record], /, *, rank: int, has_receipt: bool) -> Iterator[Record]:
        """Yields every record of a session's journal, in order."""
        session = _Session(self, self.replicas.heads[rank])
        seers = session.seers()
        whole = has_receipt
        for record in records:
            seer = seers.get(type(record))
            if seer is not None:
                seer(record)
            elif type(record) is Loss:
                whole = False
            yield record
        session.collectives.finish(whole=whole)


class _Session:
    """The readers of one session."""

    def __init__(self, across: Across, head: Head) -> None:
        self._rank = head.rank
        self._levels = across.levels
        self._names: dict[int, StateNames] = {}
        self.states = StateRows(head, across.states)
        self.inputs = InputRows(head.rank, across.inputs)
        self.collectives = CollectiveRows(head.rank, across.collectives)

    def seers(self) -> Mapping[type, Seer]:
        """Returns who takes which kind of record: asked once per record, of which there are millions."""
        found: dict[type, tuple[Seer, ...]] = {
            JournalHeader: (self._see_level,),
            LevelMark: (self._see_level,),
            StateNames: (self._see_names, self.states.see),
            State: (self.states.see_state, self._see_state),
            Kind: (self.states.see, self.inputs.see, self.collectives.see),
            Placement: (self.states.see,),
            Context: (self.inputs.see, self.collectives.see),
            Origin: (self.inputs.see,),
            Call: (self.inputs.see_call, self.collectives.see_call),
            Site: (self.collectives.see,),
            Group: (self.collectives.see,),
            Collective: (self.collectives.see,),
            CollectiveCounts: (self.collectives.see,),
            Completed: (self.collectives.see_completed,),
        }
        return {kind: _one_after_the_other(seers) for kind, seers in found.items()}

    def _see_names(self, record: StateNames) -> None:
        self._names[record.id] = record

    def _see_state(self, record: State) -> None:
        self.inputs.see_state(record, self._names)

    def _see_level(self, record: JournalHeader | LevelMark) -> None:
        bit, has = 1 << self._rank, "op" in record.levels
        if isinstance(record, LevelMark) and bool(self._levels.with_op & bit) is not has:
            self._levels.changed |= bit
        if has:
            self._levels.with_op |= bit


def _one_after_the_other(seers: Sequence[Seer]) -> Seer:
    if len(seers) == 1:
        return seers[0]

    def see(record: Record) -> None:
        for seer in seers:
            seer(record)

    return see


def presence_of(sessions: Sequence[SessionView], attendance: Sequence[Attendance], /) -> Presence:
    """Returns who is there of the latest start."""
    latest = max((session.incarnation for session in sessions), default=0)
    found = [session for session in sessions if session.incarnation == latest]
    last = attendance[-1] if attendance else None
    return Presence(
        incarnation=latest,
        num_expected=last.num_expected if last is not None else 0,
        ranks=tuple(sorted({session.rank for session in found})),
        missing=last.absent if last is not None else (),
        cut=tuple(sorted(session.rank for session in found if session.receipt is None)),
    )
