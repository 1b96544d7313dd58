"""Where the events of an inference artifact that become slices lie in its file, in columns of numbers (IN-19).

An event is 40 bytes here and is read again from its place in the file when it is written: a million activities are
never in memory as records.
"""

from array import array

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paritrace.evidence.ids import Ref
from paritrace.inference.artifact import Events
from paritrace.inference.context import Context, ContextFacts
from paritrace.inference.lines import bad_line
from paritrace.inference.records import (
    Activity,
    ClockAlignment,
    Iteration,
    Link,
    Loss,
    Membership,
    Request,
    Stage,
)
from paritrace.reports.traces.identities import number_of
from paritrace.reports.traces.time_lines import Span

Timed = Request | Iteration | Stage | Activity
UNTIMED = -(2**63)


class Owner(Struct, frozen=True, order=True):
    """A process of the trace: run, host, rank and pid as the context tells them, "" what it does not, and its clock."""

    run_id: str
    host: str
    rank: str
    pid: str
    clock: str


class Said(Struct, frozen=True):
    """What links say of an activity: the iteration, or why there is none."""

    iteration: Ref | None
    basis: str = ""
    reason: str = ""


class Found:
    """What one reading of an artifact finds."""

    def __init__(self) -> None:
        self.owners: dict[Owner, int] = {}
        self.contexts: dict[str, Context] = {}
        self.spans: dict[str, Span] = {}
        self.leading: set[str] = set()  # clocks that requests are told by
        self.alignments: list[ClockAlignment] = []
        self.losses: list[Loss] = []
        self.members: list[Membership] = []
        self.links = Links()
        self.iterations: dict[Ref, int] = {}  # the first row of each
        self.attempts: dict[Ref, dict[Ref | None, int]] = {}  # of each request: attempt -> its first row
        self._starts, self._lengths = array("q"), array("q")
        self._offsets, self._sizes = array("q"), array("q")
        self._owner_of = array("q")
        self._owner_of_context: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._starts)

    def take(self, event: object, *, offset: int, size: int) -> None:
        """Take an event whose line begins at `offset`."""
        match event:
            case Request() | Iteration() | Stage() | Activity():
                self._row(event, offset, size)
            case Link():
                self.links.take(event)
            case Membership():
                self.members.append(event)
            case ClockAlignment():
                self.alignments.append(event)
            case Loss():
                self.losses.append(event)
                self.owner(event.context)
            case _:
                return

    def owner(self, context: Context) -> int:
        """Return the number of the process that a context is of."""
        known = self._owner_of_context.get(context.id)
        if known is None:
            known = self.owners.setdefault(owner_of(context.facts), len(self.owners))
            self._owner_of_context[context.id] = known
            self.contexts[context.id] = context
        return known

    def columns(self) -> "Columns":
        """Return the rows."""
        made = (self._owner_of, self._starts, self._lengths, self._offsets, self._sizes)
        return Columns(*(np.array(one, dtype=np.int64) for one in made))

    def _row(self, event: Timed, offset: int, size: int) -> None:
        number = len(self._starts)
        self._owner_of.append(self.owner(event.context))
        start, end = event.start_ns, event.end_ns
        self._starts.append(UNTIMED if start is None else start)
        self._lengths.append(-1 if start is None or end is None else end - start)
        self._offsets.append(offset)
        self._sizes.append(size)
        clock = event.context.facts.clock_domain
        for moment in (start, end if start is not None else None):
            if moment is not None:
                known = self.spans.get(clock, Span(moment, moment))
                if not known.first_ns <= moment <= known.last_ns or clock not in self.spans:
                    self.spans[clock] = Span(min(known.first_ns, moment), max(known.last_ns, moment))
        if isinstance(event, Request):
            self.attempts.setdefault(event.request_ref, {}).setdefault(event.attempt_ref, number)
            if start is not None:
                self.leading.add(clock)
        elif isinstance(event, Iteration):
            self.iterations.setdefault(event.iteration_ref, number)


class Columns(Struct, frozen=True):
    """By row: its process, start and length in ns (UNTIMED and -1 where unknown), its line's first byte and size."""

    owners: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def of(self, owner: int) -> NDArray[np.int64]:
        """Return the rows of a process in the order in which slices are entered: by start, the longer one first."""
        rows = np.flatnonzero(self.owners == owner)
        order = np.lexsort((-self.lengths[rows], self.starts[rows]))
        return rows[order]


class Links:
    """Links in force, 24 bytes each: what is said of an activity is found by 63 bits of its name."""

    def __init__(self) -> None:
        self._says: list[Said] = []
        self._numbers: dict[Said, int] = {}
        self._activities, self._events, self._said = array("q"), array("q"), array("q")
        self._gone = array("q")
        self._sorted: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def take(self, one: Link) -> None:
        """Take a link, in force or not."""
        said = Said(one.iteration_ref, one.basis or "", one.reason or "")
        number = self._numbers.setdefault(said, len(self._says))
        if number == len(self._says):
            self._says.append(said)
        self._activities.append(number_of(*_parts(one.activity_ref)))
        self._events.append(number_of(one.event_id))
        self._said.append(number)
        self._gone.extend(number_of(old) for old in one.supersedes)

    def of(self, activity: Ref, /) -> tuple[Said, ...]:
        """Return what links in force say of an activity: nothing where none was derived."""
        names, numbers = self._table()
        wanted = number_of(*_parts(activity))
        first, end = np.searchsorted(names, wanted, "left"), np.searchsorted(names, wanted, "right")
        return tuple(self._says[number] for number in sorted(set(numbers[first:end].tolist())))

    def _table(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self._sorted is None:
            events = np.array(self._events, dtype=np.int64)
            kept = ~np.isin(events, np.array(self._gone, dtype=np.int64))
            names, numbers = (np.array(one, dtype=np.int64)[kept] for one in (self._activities, self._said))
            order = np.argsort(names, kind="stable")
            self._sorted = (names[order], numbers[order])
        return self._sorted


def found_in(events: Events) -> Found:
    """Return what an artifact holds, each line of it read once.

    Raises:
        EvidenceError, HostError: Refused, as reading the artifact.
    """
    found = Found()
    for line in events.lines():
        if line.found is None:
            raise bad_line(line, name=str(events.place.path))
        found.take(line.found, offset=line.offset, size=len(line.data))
    return found


def owner_of(facts: ContextFacts) -> Owner:
    """Return the process that a context is of."""
    rank, pid = ("" if one is None else str(one) for one in (facts.rank, facts.pid))
    return Owner(facts.run_id, facts.host or "", rank, pid, facts.clock_domain)


def _parts(ref: Ref) -> tuple[str, str]:
    return (ref.producer_id, ref.id)
