"""Events on their way into an artifact: checked, encoded and digested some at once, held outside memory (IN-5)."""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast
from weakref import finalize

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paritrace.errors import EvidenceError
from paritrace.files.faults import translated
from paritrace.inference.context import Context
from paritrace.inference.identities import event_bytes, lines_of
from paritrace.inference.identity_rows import Rows, as_rows, rows_of
from paritrace.inference.lines import NEWLINE
from paritrace.inference.records import Activity, AnyEvent, Artifact, Event, Iteration, Link

SPOOL_BYTES = 16 << 20  # what is held in memory before a file of the system's temporary folder takes over
_COPY_BYTES = 1 << 20
AT_ONCE = 512  # events that are encoded and checked in one call, which halves what each costs; some hundred KiB
ONLY_OURS = (Artifact, Link)  # `init` and `link` write these


class Gathered(Struct, frozen=True):
    """Columns over the gathered events, in their order."""

    rows: Rows
    entity_rows: Rows
    entity_events: NDArray[np.int64]  # the event of each row of `entity_rows`
    lengths: NDArray[np.int64]  # of each event's line, its newline included
    contexts: NDArray[np.int32]  # the number of each event's context
    kinds: NDArray[np.int32]  # the number of each event's type


class Gathering:
    """Takes the events of one append. `ours` lets `init` and `link` write what no collector may."""

    def __init__(self, *, run_id: str, session_id: str, ours: bool = False) -> None:
        self.run_id, self.session_id = run_id, session_id
        self.contexts: list[Context] = []
        self.kinds: list[str] = []
        self.attachment_ids: dict[str, str] = {}  # named by an event -> that event's id
        self._ours = ours
        self._numbers: dict[str, int] = {}
        self._kind_numbers: dict[type, int] = {}
        self._spool = _spool(self)
        self._rows, self._entity_rows = bytearray(), bytearray()
        self._entity_events, self._lengths = array("q"), array("q")
        self._context_numbers, self._kind_of = array("i"), array("i")
        self._context: Context | None = None
        self._decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent, dec_hook=self._current)
        self._last: tuple[Context | None, int] = (None, -1)  # the context of the last event, and its number

    def __len__(self) -> int:
        return len(self._lengths)

    def take_all(self, events: Iterable[object], *, of: str) -> None:
        """Take events in their order; `of` names who gave them.

        Raises:
            EvidenceError: Refused, code `bad_event`, as `take`; what drawing from `events` raises.
        """
        drawn = iter(events)
        while batch := list(islice(drawn, AT_ONCE)):
            try:
                given, data = self._checked(batch)
            except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, AttributeError):
                for one in batch:  # which of them it is, and what is wrong with it
                    self.take(one, of=of)
            else:
                self._add(given, data)

    def take(self, given: object, *, of: str) -> None:
        """Take one event.

        Raises:
            EvidenceError: Refused, code `bad_event`: no event, of another run or session, or one that does not hold.
        """
        event = self._event(given, of)
        self._add((event,), self._line(event, of) + NEWLINE)

    def gathered(self) -> Gathered:
        """Return the columns of what was taken, as they lie in memory: nothing is taken while one of them is held."""
        return Gathered(
            rows=as_rows(self._rows),
            entity_rows=as_rows(self._entity_rows),
            entity_events=np.frombuffer(self._entity_events, dtype=np.int64),
            lengths=np.frombuffer(self._lengths, dtype=np.int64),
            contexts=np.frombuffer(self._context_numbers, dtype=np.int32),
            kinds=np.frombuffer(self._kind_of, dtype=np.int32),
        )

    def line(self, number: int) -> bytes:
        """Return the line of one event, for a message."""
        lengths = self.gathered().lengths
        self._spool.seek(int(lengths[:number].sum()))
        return self._spool.read(int(lengths[number]))

    def copy(self, keep: NDArray[np.bool_], *, to: "Kept") -> None:
        """Add the lines that are kept to others."""
        for start, length in _runs(keep, self.gathered().lengths):
            self._spool.seek(start)
            for begin in range(0, length, _COPY_BYTES):
                to.add(self._spool.read(min(_COPY_BYTES, length - begin)))

    def _checked(self, batch: list[object]) -> tuple[list[AnyEvent], bytes]:
        """Return events with their lines; raises where not all of them may be taken."""
        given: list[AnyEvent] = []
        seen: Context | None = None
        for one in batch:
            if not isinstance(one, Event) or (isinstance(one, ONLY_OURS) and not self._ours):
                raise TypeError(type(one).__name__)
            event = cast("AnyEvent", one)
            if event.context is not seen:
                seen = event.context
                if (seen.facts.run_id, seen.facts.session_id) != (self.run_id, self.session_id):
                    raise ValueError(seen.id)
                self._check_context(seen)
            given.append(event)
        data = lines_of(given)
        self._context = seen
        self._decoder.decode_lines(data)
        return given, data

    def _add(self, given: Sequence[AnyEvent], data: bytes) -> None:
        """Take events that hold, with their lines."""
        lines = data.split(NEWLINE)[:-1]
        known, number = self._last
        for event, line in zip(given, lines, strict=True):
            row, entity = rows_of(event, line)
            self._rows += row
            if entity:
                self._entity_rows += entity
                self._entity_events.append(len(self._lengths))
            if event.context is not known:
                known, number = event.context, self._number_of(event.context)
            self._context_numbers.append(number)
            self._kind_of.append(self._kind_number(type(event)))
            self._lengths.append(len(line) + 1)
            if isinstance(event, Activity | Iteration) and event.trace_attachment_id is not None:
                self.attachment_ids.setdefault(event.trace_attachment_id, event.event_id)
        self._last = known, number
        with translated("the temporary folder", "write to"):
            self._spool.write(data)

    def _event(self, given: object, of: str) -> AnyEvent:
        if not isinstance(given, AnyEvent) or (isinstance(given, ONLY_OURS) and not self._ours):
            raise _bad(of, f"a {type(given).__name__}, which is none of the events a collector gives")
        facts = given.context.facts
        if (facts.run_id, facts.session_id) != (self.run_id, self.session_id):
            raise _bad(of, f"event {given.event_id!r} of run {facts.run_id!r}, session {facts.session_id!r}")
        return given

    def _line(self, event: AnyEvent, of: str) -> bytes:
        self._context = event.context
        try:
            self._check_context(event.context)
            line = event_bytes(event)
            self._decoder.decode(line)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
            raise _bad(of, f"event {event.event_id!r}: {error}") from error
        return line

    def _current(self, _kind: type, _value: Any) -> Context | None:
        return self._context

    def _number_of(self, context: Context) -> int:
        number = self._numbers.setdefault(context.id, len(self.contexts))
        if number == len(self.contexts):
            self.contexts.append(context)
        return number

    def _check_context(self, context: Context) -> None:
        if context.id not in self._numbers:  # a record's constructor checks no types
            msgspec.convert(msgspec.to_builtins(context.facts), type(context.facts))

    def _kind_number(self, kind: type[AnyEvent]) -> int:
        number = self._kind_numbers.get(kind)
        if number is None:
            number = self._kind_numbers[kind] = len(self.kinds)
            self.kinds.append(str(kind.__struct_config__.tag))
        return number


class Kept:
    """Lines that are to be appended, with their length and digest."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self._digest = hashlib.sha256()
        self._spool = _spool(self)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def add(self, data: bytes) -> None:
        """Add bytes at the end."""
        self.num_bytes += len(data)
        self._digest.update(data)
        with translated("the temporary folder", "write to"):
            self._spool.write(data)

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes from the start."""
        self._spool.seek(0)
        while chunk := self._spool.read(_COPY_BYTES):
            yield chunk


def _spool(owner: object) -> IO[bytes]:
    """Return a file of nobody's name that is closed when its owner is no longer held."""
    spool = SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115  closed by the finalizer
    finalize(owner, spool.close)
    return cast("IO[bytes]", spool)


def _runs(keep: NDArray[np.bool_], lengths: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield start and length in bytes of each run of lines that are kept."""
    ends = np.cumsum(lengths)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], keep, [False])).astype(np.int8)))
    for begin, end in edges.reshape(-1, 2):
        start = int(ends[begin] - lengths[begin])
        yield start, int(ends[end - 1]) - start


def _bad(of: str, what: str) -> EvidenceError:
    return EvidenceError(
        f"{of} gave {what}",
        code="bad_event",
        fix="give events of this run and session that hold what docs/formats/inference.md says; nothing was appended",
    )
