"""What of an artifact conflicts, and what it refers to in vain, from columns: a million events are never held (IN-8).

Of each event its digests are kept, some 300 bytes at the most. Only those that may not stand as they are, because
another one has the same identity, are read again and resolved by the one rule (`resolution`), as are those that refer
in vain.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paritrace.evidence.ids import Ref
from paritrace.files import Files
from paritrace.inference.artifact import Events, Place
from paritrace.inference.context import Context
from paritrace.inference.identities import event_bytes
from paritrace.inference.identity_rows import Rows, as_rows, rows_of
from paritrace.inference.lines import bad_line
from paritrace.inference.records import AnyEvent, Capabilities, Event, Link, Loss
from paritrace.inference.rereading import Rereading
from paritrace.inference.resolution import Conflict, Dangling, references, reported, resolve

Told = Capabilities | Loss
_NAME_BYTES = 16
_encode = msgspec.json.Encoder().encode
Names = NDArray[np.uint64]  # [num, 2]: a reference by the first half of a SHA-256


class Standing(Struct, frozen=True):
    """`told`: events of components and losses, each once. Links are left out of everything."""

    conflicts: tuple[Conflict, ...]
    dangling: tuple[Dangling, ...]
    told: tuple[Told, ...]


def standing(place: Place, /, *, files: Files) -> Standing:
    """Return what of an artifact stands; the same as resolving all of its events.

    Raises:
        EvidenceError, HostError: Refused, as reading the artifact.
    """
    found = _Columns(Events(place, files=files))
    doubtful = found.doubtful()
    with files.opened(place.path) as opened:
        again = Rereading(place, opened, found.contexts)
        resolved = resolve(again.read(*found.line(number)) for number in np.flatnonzero(doubtful).tolist())
        known = found.known.without(doubtful)
        wanted = found.wanted.without(doubtful)
        for event in resolved.events:
            known.take(event, reported(event), number=-1)
        in_vain = wanted.missing(known)
        dangling = [
            one
            for number in wanted.numbers_of(in_vain)
            for one in _in_vain(again.read(*found.line(number)), set(map(bytes, wanted.names[in_vain])))
        ]
    dangling += _of_resolved(resolved.events, known)
    told = [one for number, one in found.told if not doubtful[number]]
    told += [one for one in resolved.events if isinstance(one, Told)]
    order = sorted(dangling, key=lambda one: (one.kind, one.ref, one.event_id))
    return Standing(conflicts=resolved.conflicts, dangling=tuple(order), told=tuple(told))


class _References:
    """References by name, each with the number of the event that makes it."""

    def __init__(self) -> None:
        self._names, self._numbers = bytearray(), array("q")

    def take(self, _event: AnyEvent, refs: Iterable[tuple[str, Ref | None]], *, number: int) -> None:
        for kind, ref in refs:
            if ref is not None:
                self._names += _name(kind, ref)
                self._numbers.append(number)

    @property
    def names(self) -> Names:
        return np.frombuffer(bytes(self._names), dtype="<u8").reshape(-1, 2)

    @property
    def numbers(self) -> NDArray[np.int64]:
        return np.array(self._numbers, dtype=np.int64)

    def numbers_of(self, chosen: NDArray[np.bool_]) -> list[int]:
        """The events that make the chosen ones, each once, in order."""
        return [int(number) for number in np.unique(self.numbers[chosen])]

    def without(self, doubtful: NDArray[np.bool_]) -> "_References":
        """The references of events that are not doubtful."""
        kept = ~doubtful[self.numbers] if len(self._numbers) else np.zeros(0, dtype=np.bool_)
        made = _References()
        made._names += self.names[kept].tobytes()
        made._numbers.frombytes(self.numbers[kept].tobytes())
        return made

    def missing(self, known: "_References") -> NDArray[np.bool_]:
        """Whether each of these is none of the known ones."""
        both = np.concatenate([self.names, known.names])
        if not len(both):
            return np.zeros(0, dtype=np.bool_)
        _, same = np.unique(both, axis=0, return_inverse=True)
        same = same.reshape(-1)
        return ~np.isin(same[: len(self.names)], same[len(self.names) :])


class _Columns:
    """What is kept of one reading."""

    def __init__(self, events: Events) -> None:
        self.contexts: dict[str, Context] = {}
        self.told: list[tuple[int, Told]] = []
        self.known, self.wanted = _References(), _References()
        self._rows, self._entities, self._of = bytearray(), bytearray(), array("q")
        self._offsets, self._sizes = array("q"), array("q")
        for line in events.lines():
            if line.found is None:
                raise bad_line(line, name=str(events.place.path))
            if isinstance(line.found, Event) and not isinstance(line.found, Link):
                self._take(line.found, line.offset, len(line.data))

    def line(self, number: int) -> tuple[int, int]:
        return self._offsets[number], self._sizes[number]

    def doubtful(self) -> NDArray[np.bool_]:
        """Whether an event shares its identity, or that of what it describes, with another one."""
        found = _repeated(as_rows(self._rows))
        of = np.array(self._of, dtype=np.int64)
        found[of[_repeated(as_rows(self._entities))]] = True
        return found

    def _take(self, event: AnyEvent, offset: int, size: int) -> None:
        number = len(self._offsets)
        self._offsets.append(offset)
        self._sizes.append(size)
        self.contexts[event.context.id] = event.context
        row, entity = rows_of(event, event_bytes(event))
        self._rows += row
        if entity:
            self._entities += entity
            self._of.append(number)
        self.known.take(event, reported(event), number=number)
        self.wanted.take(event, references(event), number=number)
        if isinstance(event, Told):
            self.told.append((number, event))


def _repeated(rows: Rows) -> NDArray[np.bool_]:
    """Whether the key of each row is that of another one, too."""
    found = np.zeros(len(rows), dtype=np.bool_)
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    keys = rows[order, :2]
    same = (keys[1:] == keys[:-1]).all(axis=1)
    found[order[1:][same]] = True
    found[order[:-1][same]] = True
    return found


def _in_vain(event: AnyEvent, names: set[bytes]) -> Iterator[Dangling]:
    for kind, ref in references(event):
        if ref is not None and _name(kind, ref) in names:
            yield Dangling(event.event_id, kind, ref)


def _of_resolved(events: Iterable[AnyEvent], known: _References) -> Iterator[Dangling]:
    wanted, held = _References(), list(events)
    for number, event in enumerate(held):
        wanted.take(event, references(event), number=number)
    in_vain = wanted.missing(known)
    names = set(map(bytes, wanted.names[in_vain]))
    for number in wanted.numbers_of(in_vain):
        yield from _in_vain(held[number], names)


def _name(kind: str, ref: Ref) -> bytes:
    return hashlib.sha256(_encode((kind, ref.producer_id, ref.id))).digest()[:_NAME_BYTES]
