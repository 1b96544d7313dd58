"""Links that an artifact has already, in columns: what is said of an activity, and by which link (IN-7)."""

import hashlib
from array import array
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from paritrace.evidence.ids import Ref
from paritrace.inference.records import Link

_NAME_BYTES = 16  # the first half of a SHA-256: of a billion links, two share it by chance once in 10^20 artifacts
_encode = msgspec.json.Encoder(order="sorted").encode
Names = NDArray[np.uint64]  # [num, 2]


def said_by(one: Link, /) -> bytes:
    """Return a digest of what a link says, whatever it supersedes."""
    content = (one.iteration_ref, one.basis, one.reason, one.candidates, one.num_candidates, one.evidence)
    return _digest((one.rule, *content, one.metadata))


class KeptLinks:
    """Takes all links of an artifact, then tells of those that no other one supersedes; some 90 bytes for each."""

    def __init__(self) -> None:
        self._activities, self._said, self._ids, self._gone = bytearray(), bytearray(), bytearray(), bytearray()
        self._ends = array("q", [0])  # where each event id ends
        self._sorted: tuple[Names, NDArray[np.int64]] | None = None

    def take(self, one: Link, /) -> None:
        """Take a link, in force or not."""
        self._activities += _digest(one.activity_ref)
        self._said += said_by(one)
        self._ids += one.event_id.encode()
        self._ends.append(len(self._ids))
        for old in one.supersedes:
            self._gone += _digest(old)

    def of(self, activity: Ref, /) -> Iterator[tuple[bytes, str]]:
        """Yield what links in force say of an activity, each with the id of its event."""
        if not self._activities:
            return
        names, places = self._in_force()
        wanted = _words(_digest(activity))[0]
        first: np.uint64 = wanted[0]
        at = int(np.searchsorted(names[:, 0], first, "left"))
        while at < len(names) and names[at, 0] == first:
            if names[at, 1] == wanted[1]:
                place = int(places[at])
                said = bytes(self._said[place * _NAME_BYTES : (place + 1) * _NAME_BYTES])
                yield said, self._id(place)
            at += 1

    def _id(self, place: int) -> str:
        return self._ids[self._ends[place] : self._ends[place + 1]].decode()

    def _in_force(self) -> tuple[Names, NDArray[np.int64]]:
        """The activities of links in force, sorted, and which links they are."""
        if self._sorted is None:
            names = _words(self._activities)
            gone = {bytes(self._gone[at : at + _NAME_BYTES]) for at in range(0, len(self._gone), _NAME_BYTES)}
            kept = np.ones(len(names), dtype=np.bool_)
            if gone:
                kept[:] = [_digest(self._id(place)) not in gone for place in range(len(names))]
            places = np.flatnonzero(kept)
            order = np.lexsort((names[places, 1], names[places, 0]))
            self._sorted = (names[places][order], places[order])
        return self._sorted


def _words(data: bytes | bytearray) -> Names:
    return np.frombuffer(bytes(data), dtype="<u8").reshape(-1, 2)


def _digest(value: object) -> bytes:
    return hashlib.sha256(_encode(value)).digest()[:_NAME_BYTES]
