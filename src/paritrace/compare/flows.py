"""Where the inputs of calls come from: recorded flow only, never a pair or a fingerprint (CP-20)."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paritrace.compare.lookups import distinct
from paritrace.compare.translate import Side
from paritrace.evidence.call_batches import FROM_ORIGIN
from paritrace.evidence.calls import Flag, Origin, OriginKind, Slot


class FromCall(NamedTuple):
    """An input made by a recorded call: its index on its side (`call`), and which of its outputs."""

    call: int
    output: int


class FromOrigin(NamedTuple):
    """An input that no recorded call made; `name` is spelled alike on both sides, `kind` first."""

    kind: OriginKind
    name: str


class FromUncompared(NamedTuple):
    """An input made by a recorded call that takes no part: ignored, or of a step that is not compared."""

    record: int


Source = FromCall | FromOrigin | FromUncompared
UNKNOWN = FromOrigin(OriginKind.UNKNOWN, "")


def source_of(side: Side, slot: Slot) -> Source:
    """Return where a slot's value comes from, as recorded."""
    source = slot.source
    if not isinstance(source, int):
        return _made_by(side, *source)
    return named(side, source)


def source_at(side: Side, place: int) -> Source:
    """The same of the slot at a place of the side's columns."""
    source, output = side.calls.values("source")[place], side.calls.values("output")[place]
    return named(side, source) if output == FROM_ORIGIN else _made_by(side, source, output)


def _made_by(side: Side, record: int, output: int) -> Source:
    index = side.index_of.get(record)
    return FromUncompared(record) if index is None else FromCall(index, output)


def named(side: Side, source: int) -> FromOrigin:
    """What bears this id of an origin, as both sides spell it; `UNKNOWN` below 0."""
    if source < 0:
        return UNKNOWN
    origin: Origin = side.recorded.origins[source]
    return FromOrigin(origin.kind, side.origin_names[source].partition(":")[2])


class Views:
    """Unpaired calls whose outputs are views: between a producer and its reader, they may change what is read."""

    def __init__(self, side: Side, partners: Sequence[int]) -> None:
        self._by_source: dict[Source, list[int]] = defaultdict(list)
        views = (side.calls.column("flags") & Flag.VIEW.value != 0) & (np.asarray(partners) < 0)
        for index in np.flatnonzero(views).tolist():
            for slot in side.calls[index].inputs[:1]:
                self._by_source[source_of(side, slot)].append(index)

    def between(self, source: Source, *, before: int) -> list[int]:
        """The unpaired views of a source that were taken before call `before`."""
        return [index for index in self._by_source.get(source, ()) if index < before]


class Draws:
    """The calls that draw from each generator, in execution order."""

    def __init__(self, side: Side) -> None:
        self._last: dict[int, int] = {}
        latest: dict[str, int] = {}
        for index in _drawing(side):
            for slot in side.calls[index].inputs:
                source = source_of(side, slot) if isinstance(slot.source, int) else None
                if isinstance(source, FromOrigin) and source.kind is OriginKind.RNG:
                    self._last[index] = latest.get(source.name, -1)
                    latest[source.name] = index

    def previous(self, index: int) -> int:
        """The draw before this one from the same generator, -1 if there was none."""
        return self._last.get(index, -1)


def _drawing(side: Side) -> list[int]:
    """The calls with an input that is a generator's state."""
    generators = [o.id for o in side.recorded.origins.values() if o.kind is OriginKind.RNG]
    calls = side.calls
    slots = np.flatnonzero((calls.column("output") == FROM_ORIGIN) & np.isin(calls.column("source"), generators))
    owners = np.searchsorted(calls.column("first"), slots, side="right") - 1
    found: list[int] = distinct(owners[slots < calls.column("middle")[owners]]).tolist()
    return found
