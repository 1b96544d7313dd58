"""The lossy export: Chrome's JSON, for viewers that read nothing else; it says what it loses (SU-8)."""

import json
from typing import Any

from msgspec.structs import asdict

from paritrace.reports.formats import Sink
from paritrace.reports.traces.events import Event, Tally
from paritrace.reports.traces.packets import COMPLETE
from paritrace.reports.traces.texts import integer, number, text

LOSSY = "lossy export of paritrace: times are doubles of microseconds, and there are no arrows between calls"
FLUSH_BYTES = 1 << 20


class ChromePackets:
    """Takes what Packets takes and writes JSON: one document, complete when `close` returns."""

    def __init__(self, sink: Sink, *, sequence: int) -> None:
        self._sink = sink
        self._pid = 0
        self._waiting: list[str] = []
        self._size = 0
        self._counters: dict[int, str] = {}
        self._tids: dict[int, int] = {}

    def begin_sequence(self, *, clocks: dict[int, int]) -> None:
        told = {"paritrace": LOSSY, "clocks": {str(identity): value for identity, value in clocks.items()}}
        self._add(f'{{"displayTimeUnit":"ns","otherData":{json.dumps(told)},"traceEvents":[')

    def process(self, track: int, *, pid: int, name: str, labels: tuple[str, ...]) -> None:
        self._pid = pid
        self._meta("process_name", {"name": text(name)}, first=True)
        self._meta("process_labels", {"labels": ", ".join(map(text, labels))})

    def track(self, track: int, *, parent: int, name: str, order: int, description: str = "") -> None:
        self._meta("thread_name", {"name": text(name)}, tid=self._tid(track))
        self._meta("thread_sort_index", {"sort_index": order}, tid=self._tid(track))

    def counter(self, track: int, *, parent: int, name: str, unit: str, order: int) -> None:
        self._counters[track] = text(name)

    def begin(self, track: int, event: Event) -> None:
        self._emit(self._event("B", track, event))

    def end(self, track: int, at: int) -> None:
        self._emit({"ph": "E", "pid": self._pid, "tid": self._tid(track), "ts": at / 1000})

    def instant(self, track: int, event: Event) -> None:
        self._emit(self._event("i", track, event) | {"s": "t"})

    def count(self, track: int, at: int, value: float) -> None:
        name = self._counters[track]
        self._emit({"ph": "C", "pid": self._pid, "name": name, "ts": at / 1000, "args": {"value": value}})

    def close(self, track: int, tally: Tally, *, at: int, facts: dict[str, str]) -> None:
        last = {"ph": "i", "pid": self._pid, "tid": self._tid(track), "name": COMPLETE, "ts": at / 1000, "s": "t"}
        self._emit(last | {"args": asdict(tally) | facts})
        self._add("]}\n")
        self._flush()

    def _event(self, phase: str, track: int, event: Event) -> dict[str, Any]:
        arguments: dict[str, Any] = {name: _value(value) for name, value in (*event.words, *event.arguments)}
        if event.file:
            arguments["source"] = text(f"{event.file}:{event.line}")
        named = {"ph": phase, "pid": self._pid, "tid": self._tid(track), "name": text(event.name)}
        return named | {"cat": event.category, "ts": event.start_ns / 1000, "args": arguments}

    def _tid(self, track: int) -> int:
        """Small numbers: a track's own is beyond what a double holds."""
        return self._tids.setdefault(track, len(self._tids) + 1)

    def _meta(self, name: str, arguments: dict[str, Any], *, tid: int = 0, first: bool = False) -> None:
        told = {"ph": "M", "pid": self._pid, "tid": tid, "name": name, "args": arguments}
        self._emit(told, first=first)

    def _emit(self, event: dict[str, Any], *, first: bool = False) -> None:
        self._add(("" if first else ",\n") + json.dumps(event, allow_nan=False))

    def _add(self, piece: str) -> None:
        self._waiting.append(piece)
        self._size += len(piece)
        if self._size >= FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._sink.write("".join(self._waiting).encode())
        self._waiting, self._size = [], 0


def _value(value: str | float | bool) -> str | float | bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return integer(value)
    return number(value) if isinstance(value, float) else text(value)
