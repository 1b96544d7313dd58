"""Reads the text of a trace: events in batches, and the members around them, until it ends or cannot be read (IN-10).

A block of events is parsed at once. It is cut where a comma seems to stand between two events; that the parser takes
it proves the cut, because text up to there then is a list of whole values. Where it does not, the block is halved, and
at last one event is taken by itself.
"""

from collections.abc import Iterable, Iterator

import msgspec

from paritrace.inference.importers.kineto_events import TraceEvent
from paritrace.inference.importers.kineto_repeats import may_repeat, repeats
from paritrace.inference.importers.kineto_scan import boundaries, end_of_value
from paritrace.inference.importers.kineto_single import UNREADABLE, Oddities, checked, event_of, fault_in, name_of
from paritrace.inference.importers.kineto_stops import Stop, Stopped, StopReason
from paritrace.inference.importers.kineto_window import Window

BLOCK_BYTES = 1 << 19
LEAST_BLOCK_BYTES = 1 << 12
MOST_VALUE_BYTES = 64 << 20  # one event, or one member beside the events: what is held at once
EVENTS = "traceEvents"
_SPACE = b" \t\r\n"
_SPACES = frozenset((b" ", b"\t", b"\r", b"\n"))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_decode_events = msgspec.json.Decoder(list[TraceEvent]).decode


class TraceText:
    """One trace, read once. After `batches` is exhausted the other fields say what was found.

    `stop` is None where the text was read to its end and closed as it should be. `members`: what stands beside the
    events, None for one that stands there twice. `in_array`: the file is a bare list of events.
    """

    def __init__(self, chunks: Iterable[bytes], /) -> None:
        self._window = Window(chunks)
        self._limit = BLOCK_BYTES
        self.members: dict[str, object] = {}
        self._named: set[str] = set()
        self.stop: Stop | None = None
        self.num_events = 0
        self.oddities = Oddities()
        self.in_array = False
        self.has_events = False

    @property
    def num_bytes(self) -> int:
        """How much of the text was read."""
        return self._window.byte

    def batches(self) -> Iterator[list[TraceEvent]]:
        """Yield the events in order; whatever goes wrong ends it and stands in `stop`."""
        try:
            yield from self._document()
        except Stopped as stopped:
            self.stop = Stop(stopped.reason, stopped.byte, self.num_events, stopped.detail)

    def _document(self) -> Iterator[list[TraceEvent]]:
        window = self._window
        if window.holds(len(_BYTE_ORDER_MARK)) and window.data.startswith(_BYTE_ORDER_MARK):
            window.at = len(_BYTE_ORDER_MARK)
        opening = self._next()
        if opening == b"[":
            self.in_array = self.has_events = True
            yield from self._events()
        elif opening == b"{":
            yield from self._members()
        else:
            raise Stopped(StopReason.NOT_A_TRACE, window.byte - 1, f"it begins with {opening!r}")
        self._end()

    def _end(self) -> None:
        """Require that nothing but space follows."""
        window = self._window
        while window.holds(1):
            window.at += len(window.data) - window.at - len(window.data[window.at :].lstrip(_SPACE))
            if window.at < len(window.data):
                raise Stopped(StopReason.INVALID_JSON, window.byte, "text behind the end")
        if not window.whole():
            raise window.ends()

    def _members(self) -> Iterator[list[TraceEvent]]:
        if self._peek() == b"}":
            self._window.at += 1
            return
        while True:
            yield from self._member()
            mark = self._next()
            if mark == b"}":
                return
            if mark != b",":
                raise Stopped(StopReason.INVALID_JSON, self._window.byte - 1, f"{mark!r} between members")

    def _member(self) -> Iterator[list[TraceEvent]]:
        self._peek()
        at = self._window.byte
        name = name_of(self._value(), at=at)
        if self._next() != b":":
            raise Stopped(StopReason.INVALID_JSON, self._window.byte - 1, "no colon behind a name")
        again = name in self._named
        self._named.add(name)
        if again:
            self.oddities.repeated_members.add(name)
        if self._peek() == b"[" and name == EVENTS:
            self._window.at += 1
            self.has_events = True
            yield from self._events()
            return
        at = self._window.byte
        value = checked(self._value(), at=at, oddities=self.oddities)
        self.members[name] = None if again else value

    def _events(self) -> Iterator[list[TraceEvent]]:
        """Read behind the opening bracket, up to and with the closing one."""
        more = self._peek() != b"]"
        if not more:
            self._window.at += 1
        while more:
            batch = self._block()
            if batch is not None:
                yield batch
                continue
            yield [self._single()]
            more = self._separator()

    def _separator(self) -> bool:
        """Take what stands behind an event; say whether another follows."""
        mark = self._next()
        if mark == b"," and self._peek() == b"]":
            self.oddities.trailing_commas += 1
            mark = self._next()
        if mark not in (b",", b"]"):
            raise Stopped(StopReason.INVALID_JSON, self._window.byte - 1, f"{mark!r} between events")
        return mark == b","

    def _block(self) -> list[TraceEvent] | None:
        """Parse as many whole events as lie ahead, None where one must be taken by itself."""
        window = self._window
        if not window.holds(self._limit):
            self._limit = len(window.data) - window.at
        while self._limit >= LEAST_BLOCK_BYTES:
            end = min(len(window.data), window.at + self._limit)
            for comma in boundaries(window.data, window.at, end):
                batch = _events_in(window.data[window.at : comma])
                if batch is not None:
                    window.at = comma + 1
                    self._grow()
                    self.num_events += len(batch)
                    return batch
            self._limit //= 2
        return None

    def _grow(self) -> None:
        self._limit = min(BLOCK_BYTES, max(LEAST_BLOCK_BYTES, 2 * self._limit))

    def _single(self) -> TraceEvent:
        self._peek()
        at = self._window.byte
        event = event_of(self._value(), at=at, oddities=self.oddities)
        self._grow()
        self.num_events += 1
        return event

    def _value(self) -> bytes:
        """Take one whole value, which begins at the next byte."""
        window, wanted = self._window, LEAST_BLOCK_BYTES
        if window.data[window.at : window.at + 1] in (b",", b":", b"]", b"}"):
            raise Stopped(StopReason.INVALID_JSON, window.byte, "no value")
        while True:
            more = window.holds(wanted)
            end = end_of_value(window.data, window.at)
            if end is not None:
                text = window.data[window.at : end]
                window.at = end
                return text
            if not more or wanted >= MOST_VALUE_BYTES:
                fault = fault_in(window.data[window.at :], at=window.byte)
                if fault is not None:
                    raise fault
            if not more:
                raise window.ends()
            if wanted >= MOST_VALUE_BYTES:
                raise Stopped(StopReason.TOO_LARGE, window.byte, f"a value of more than {MOST_VALUE_BYTES:,} bytes")
            wanted *= 4

    def _peek(self) -> bytes:
        """The next byte that is no space, left in place."""
        window = self._window
        while window.holds(1):
            while window.at < len(window.data):
                mark = window.data[window.at : window.at + 1]
                if mark not in _SPACES:
                    return mark
                window.at += 1
        raise window.ends()

    def _next(self) -> bytes:
        """The next byte that is no space, taken."""
        mark = self._peek()
        self._window.at += 1
        return mark


def _events_in(text: bytes) -> list[TraceEvent] | None:
    listed = b"[" + text + b"]"
    try:
        events = _decode_events(listed)
    except UNREADABLE:
        return None
    return None if may_repeat(text, events) and repeats(listed) else events
