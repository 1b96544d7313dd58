"""The full summaries of one session, packed: each is unpacked when somebody asks for it (CP-17)."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import zstandard

from paritrace.evidence.calls import Detail

PACKED = 256  # summaries in one block: unpacking takes some 300 us, and 128 blocks are kept unpacked
BLOCKS_KEPT = 128
SIDES = ("i", "o")
Key = tuple[int, str, int]


class DetailStore(Mapping[Key, Detail]):
    """Summaries by call id, side and slot; of two for the same slot the later one counts."""

    def __init__(self) -> None:
        self._waiting: list[Detail] = []
        self._blocks: list[bytes] = []
        self._calls, self._slots = array("q"), array("q")  # of each in the order of arrival; a slot's is 2 n + side
        self._degenerate = array("b")
        self._order: npt.NDArray[np.int64] | None = None
        self._sorted = array("q")
        self._summarised: set[int] = set()  # calls: nine in ten have none
        self._odd: dict[Key, Detail] = {}  # what does not fit the columns
        self._unpacked = lru_cache(maxsize=BLOCKS_KEPT)(self._unpack)

    def take(self, detail: Detail) -> None:
        """Append a summary."""
        if detail.side not in SIDES or not 0 <= detail.slot < 1 << 31 or not -(1 << 62) < detail.call < 1 << 62:
            self._odd[detail.call, detail.side, detail.slot] = detail
            return
        self._calls.append(detail.call)
        self._summarised.add(detail.call)
        self._slots.append(2 * detail.slot + (detail.side == "o"))
        self._degenerate.append(detail.degenerate)
        self._wait_for_others([detail])

    def take_all(self, details: Sequence[Detail]) -> None:
        """Append summaries, at less cost for each."""
        calls, slots = [detail.call for detail in details], [2 * detail.slot for detail in details]
        sides = [detail.side for detail in details]
        if not details or set(sides) - set(SIDES) or min(slots) < 0 or max(slots) >= 1 << 32:
            fits = False
        else:
            fits = min(calls) > -(1 << 62) and max(calls) < 1 << 62
        if not fits:
            for detail in details:
                self.take(detail)
            return
        self._calls.extend(calls)
        self._summarised.update(calls)
        self._slots.extend([slot + (side == "o") for slot, side in zip(slots, sides, strict=True)])
        self._degenerate.extend([detail.degenerate for detail in details])
        self._wait_for_others(details)

    def _wait_for_others(self, details: Sequence[Detail]) -> None:
        self._waiting += details
        self._order = None
        while len(self._waiting) >= PACKED:
            packed = zstandard.ZstdCompressor(level=1).compress(_encoder.encode(self._waiting[:PACKED]))
            self._blocks.append(packed)
            self._waiting = self._waiting[PACKED:]

    def _unpack(self, block: int) -> list[Detail]:
        return _decoder.decode(zstandard.ZstdDecompressor().decompress(self._blocks[block]))

    def degenerate(self, calls: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
        """Index in `calls` (rising ids) and slot of every degenerate input."""
        found: dict[tuple[int, int], bool] = {}
        wanted = (
            np.flatnonzero(np.frombuffer(self._slots, np.int64) % 2 == 0) if self._slots else np.array([], np.int64)
        )
        ids = np.frombuffer(self._calls, np.int64)[wanted] if self._calls else np.array([], np.int64)
        places = np.searchsorted(calls, ids)
        for which, place, call in zip(wanted.tolist(), places.tolist(), ids.tolist(), strict=True):
            if place < len(calls) and calls[place] == call:
                found[place, self._slots[which] // 2] = bool(self._degenerate[which])
        return [key for key, degenerate in found.items() if degenerate]

    def __getitem__(self, key: Key) -> Detail:
        which = self._which(key)
        return self._odd[key] if which < 0 else self._at(which)

    def _at(self, which: int) -> Detail:
        block, place = divmod(which, PACKED)
        return self._unpacked(block)[place] if block < len(self._blocks) else self._waiting[place]

    def get(self, key: Key, default: Any = None) -> Any:
        """As of a dict; most slots have no summary, and that is found soon."""
        if key[0] not in self._summarised and not self._odd:
            return default
        which = self._which(key)
        return self._at(which) if which >= 0 else self._odd.get(key, default)

    def _which(self, key: Key) -> int:
        """The number of arrival of the last summary of a slot, -1 if there is none."""
        call, side, slot = key
        if side not in SIDES or not -(1 << 62) < call < 1 << 62:
            return -1
        if self._order is None:
            self._settle()
        ids = self._sorted
        at = bisect_left(ids, call)
        if at == len(ids) or ids[at] != call:
            return -1
        wanted, last = 2 * slot + (side == "o"), -1
        while at < len(ids) and ids[at] == call:
            which = int(self._order[at])  # type: ignore[index]  # settled above
            last = which if self._slots[which] == wanted else last
            at += 1
        return last

    def _settle(self) -> None:
        calls = np.array(self._calls, dtype=np.int64)
        self._order = np.argsort(calls, kind="stable")
        self._sorted = array("q", calls[self._order].tobytes())

    def __iter__(self) -> Iterator[Key]:
        pairs = zip(self._calls, self._slots, strict=True)
        yield from dict.fromkeys((call, SIDES[slot % 2], slot // 2) for call, slot in pairs)
        yield from self._odd

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return bool(self._calls or self._odd)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Detail])
