"""The full summaries of one session, the many of a long one packed: each is read when somebody asks for it (CP-17)."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import zstandard

from paritrace.evidence.calls import Detail
from paritrace.evidence.line_blocks import DetailLines

PACKED = 256  # summaries in one block: unpacking takes some 100 us, and 32 blocks of 200 KB are kept unpacked
BLOCKS_KEPT = 32
PLAIN_BYTES = 32 << 20  # summaries of so many bytes are kept as they are: packing those of 200,000 calls took a twelfth
SIDES = ("i", "o")
MOST_CALL, MOST_SLOT = 1 << 62, 1 << 31  # beyond them, a summary is kept by itself
Key = tuple[int, str, int]
Numbers = npt.NDArray[Any]


class DetailStore(Mapping[Key, Detail]):
    """Summaries by call id, side and slot; of two for the same slot the later one counts."""

    def __init__(self) -> None:
        self._blocks: list[bytes | Sequence[bytes]] = []  # lines of JSON: compressed, or as they came
        self._plain = 0  # bytes that are kept as they came
        self._starts: list[int] = []  # the number of arrival of the first summary of each block
        self._size = 0
        self._growing: list[tuple[Numbers, Numbers, Numbers]] = []
        self._columns = (_NOTHING, _NOTHING, _NOTHING.astype(np.bool_))  # call, 2 n + side, degenerate, as they arrived
        self._order = self._sorted = _NOTHING
        self._ids: memoryview[int] = _NOTHING.data  # of `_sorted`
        self._odd: dict[Key, Detail] = {}  # what does not fit the columns
        self._unpacked = lru_cache(maxsize=BLOCKS_KEPT)(_unpack)

    def take(self, detail: Detail) -> None:
        """Append a summary."""
        self.take_all([detail])

    def take_all(self, details: Sequence[Detail]) -> None:
        """Append summaries."""
        plain = [detail for detail in details if _is_plain(detail)]
        for detail in details:
            if not _is_plain(detail):
                self._odd[detail.call, detail.side, detail.slot] = detail
        self.take_lines(
            DetailLines(
                np.array([detail.call for detail in plain], np.int64),
                np.array([2 * detail.slot + (detail.side == "o") for detail in plain], np.int64),
                np.array([detail.degenerate for detail in plain], np.bool_),
                [_encoder.encode(detail) for detail in plain],
            )
        )

    def take_lines(self, details: DetailLines) -> None:
        """Append summaries that are lines still."""
        if not len(details):
            return
        self._growing.append((details.calls, details.slots, details.degenerate))
        num_bytes = sum(map(len, details.lines))
        if self._plain + num_bytes <= PLAIN_BYTES:
            self._starts.append(self._size)
            self._blocks.append(details.lines)
            self._plain += num_bytes
        else:
            self._pack(details.lines)
        self._size += len(details)

    def _pack(self, lines: Sequence[bytes]) -> None:
        compressor = zstandard.ZstdCompressor(level=1)
        for start in range(0, len(lines), PACKED):
            self._starts.append(self._size + start)
            packed = compressor.compress(b"\n".join(lines[start : start + PACKED]))
            self._blocks.append(bytes(memoryview(packed)))  # a copy: the other one holds three times its length

    def degenerate(self, calls: Numbers) -> list[tuple[int, int]]:
        """Index in `calls` (rising ids) and slot of every degenerate input."""
        self._settle()
        ids, slots, degenerate = self._columns
        wanted = np.flatnonzero(slots % 2 == 0)
        places = np.searchsorted(calls, ids[wanted])
        known = np.append(calls, -1)[places] == ids[wanted]
        wanted, places = wanted[known & (places < len(calls))], places[known & (places < len(calls))]
        last = dict(zip(zip(places.tolist(), (slots[wanted] // 2).tolist(), strict=True), wanted.tolist(), strict=True))
        return [key for key, which in last.items() if degenerate[which]]

    def about(self, calls: Numbers) -> Numbers:
        """Of each of these ids whether a slot of the call may have a summary."""
        self._settle()
        found: Numbers = np.searchsorted(self._sorted, calls) < np.searchsorted(self._sorted, calls, side="right")
        return found | np.isin(calls, [call for call, _, _ in self._odd]) if self._odd else found

    def of_calls(self, calls: Numbers) -> Iterator[tuple[int, str, int, Detail]]:
        """Place in `calls`, side, slot and summary of all that is kept of these ids; the one that counts comes last."""
        self._settle()
        for place, call in enumerate(calls.tolist()) if self._odd else ():
            yield from ((place, *key[1:], detail) for key, detail in self._odd.items() if key[0] == call)
        low, high = (np.searchsorted(self._sorted, calls, side=side) for side in ("left", "right"))
        for place in np.flatnonzero(low < high).tolist():
            for which in self._order[low[place] : high[place]].tolist():
                slot = int(self._columns[1][which])
                yield place, SIDES[slot % 2], slot // 2, self._at(which)

    def __getitem__(self, key: Key) -> Detail:
        which = self._which(key)
        return self._odd[key] if which < 0 else self._at(which)

    def _at(self, which: int) -> Detail:
        block = bisect_right(self._starts, which) - 1
        kept = self._blocks[block]
        lines = self._unpacked(kept) if isinstance(kept, bytes) else kept
        return _decoder.decode(lines[which - self._starts[block]])

    def get(self, key: Key, default: Any = None) -> Any:
        """As of a dict; most slots have no summary, and that is found soon."""
        which = self._which(key)
        return self._at(which) if which >= 0 else self._odd.get(key, default)

    def _which(self, key: Key) -> int:
        """The number of arrival of the last summary of a slot, -1 if there is none."""
        call, side, slot = key
        if side not in SIDES or not -MOST_CALL < call < MOST_CALL:
            return -1
        self._settle()
        at = bisect_right(self._ids, call) - 1  # rising by call, then by arrival
        wanted = 2 * slot + (side == "o")
        while at >= 0 and self._ids[at] == call:
            which = int(self._order[at])
            if self._columns[1][which] == wanted:
                return which
            at -= 1
        return -1

    def _settle(self) -> None:
        if not self._growing:
            return
        columns = [self._columns, *self._growing]
        calls, slots, degenerate = (np.concatenate(column) for column in zip(*columns, strict=True))
        self._columns, self._growing = (calls, slots, degenerate), []
        self._order = np.argsort(calls, kind="stable")
        self._sorted = calls[self._order]
        self._ids = self._sorted.data

    def __iter__(self) -> Iterator[Key]:
        self._settle()
        calls: list[int] = self._columns[0].tolist()
        slots: list[int] = self._columns[1].tolist()
        pairs = zip(calls, slots, strict=True)
        yield from dict.fromkeys((call, SIDES[slot % 2], slot // 2) for call, slot in pairs)
        yield from self._odd

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return bool(self._size or self._odd)


def _unpack(block: bytes) -> list[bytes]:
    return zstandard.ZstdDecompressor().decompress(block).split(b"\n")


def _is_plain(detail: Detail) -> bool:
    return detail.side in SIDES and 0 <= detail.slot < MOST_SLOT and -MOST_CALL < detail.call < MOST_CALL


_NOTHING = np.array([], np.int64)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Detail)
