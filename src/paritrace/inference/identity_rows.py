"""Identities as rows of 32 bytes, so that what an artifact holds is looked up without reading it (EV-9, EV-19).

A row is the first half of a SHA-256 of a key and the first half of one of what the key stands for.
"""

import hashlib
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from paritrace.inference.context import Context
from paritrace.inference.entities import Key, entity_key
from paritrace.inference.records import AnyEvent

ROW_BYTES = 32
_HALF = 16
_WORDS = ROW_BYTES // 8
_FEW = 16  # rows that are each looked for by themselves: quicker than sorting up to some dozens
Rows = NDArray[np.uint64]  # [num_rows, 4]: two words of the key, two of the content
_encode = msgspec.json.Encoder().encode


def rows_of(event: AnyEvent, line: bytes) -> tuple[bytes, bytes]:
    """Return the row of an event and the row of the thing it describes; the second is empty where it describes none.

    The content of both is the line without the event's id: the key of the first one has it.

    Args:
        line: the event's canonical line.
    """
    facts, name = event.context.facts, _encode(event.event_id)
    key = _half(_before_id(facts.session_id, facts.producer_id) + name + b"]")
    thing = entity_key(event)
    told = _half(line.replace(b'"event_id":' + name + b",", b"", 1))  # keys are sorted: none nests before
    return key + told, b"" if thing is None else _half(_encode(thing)) + told


def context_row(context: Context) -> bytes:
    """Return the row of a context that an artifact defines."""
    return _row(("context", context.id), _encode(context.facts))


def marker(num_bytes: int) -> bytes:
    """Return the row that ends an append: up to which byte of the artifact the rows before it reach."""
    return _MARK + num_bytes.to_bytes(_HALF, "little")


def as_rows(data: bytes | bytearray) -> Rows:
    """Return stored rows as words."""
    return np.frombuffer(data, dtype="<u8").reshape(-1, _WORDS)


def reaches(data: bytes) -> int | None:
    """Return up to which byte of an artifact stored rows reach, None where they are not whole."""
    last = data[-ROW_BYTES:]
    if len(data) % ROW_BYTES or last[:_HALF] != _MARK:
        return None
    return int.from_bytes(last[_HALF:], "little")


def states(rows: Rows, *, known: Rows) -> NDArray[np.int8]:
    """Return for each row whether its key is known: 0 new, 1 known with this content, 2 known with another one."""
    found = np.zeros(len(rows), dtype=np.int8)
    if not len(known) or not len(rows):
        return found
    if len(rows) <= _FEW:
        for number, row in enumerate(rows):
            same_key = known[known[:, 0] == row[0]]
            same_key = same_key[same_key[:, 1] == row[1]]
            if len(same_key):
                found[number] = 1 if bool((same_key[:, 2:] == row[2:]).all()) else 2
        return found
    order = np.argsort(rows[:, 0], kind="stable")
    firsts = rows[order, 0]
    left = np.searchsorted(firsts, known[:, 0], side="left")
    hits = np.flatnonzero((left < len(firsts)) & (firsts[np.minimum(left, len(firsts) - 1)] == known[:, 0]))
    for hit in hits:
        at = left[hit]
        while at < len(firsts) and firsts[at] == known[hit, 0]:
            one = order[at]
            if rows[one, 1] == known[hit, 1]:
                same = bool((rows[one, 2:] == known[hit, 2:]).all())
                found[one] = max(found[one], 1 if same else 2)
            at += 1
    return found


def repeated(rows: Rows) -> tuple[NDArray[np.int8], int | None]:
    """Return for each row whether an earlier one has its key, as `states` says it, and the first that conflicts."""
    found = np.zeros(len(rows), dtype=np.int8)
    alike = _sharing(rows[:, 0])
    rows = rows[alike]
    order = np.lexsort((np.arange(len(rows)), rows[:, 1], rows[:, 0]))
    inner = rows[order]
    same_key = (inner[1:, :2] == inner[:-1, :2]).all(axis=1)
    same_all = same_key & (inner[1:, 2:] == inner[:-1, 2:]).all(axis=1)
    found[alike[order[1:][same_key]]] = 1
    found[alike[order[1:][same_key & ~same_all]]] = 2
    conflicts = np.flatnonzero(found == 2)
    return found, int(conflicts[0]) if len(conflicts) else None


def _sharing(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return, rising, the places of words that stand at several places: few, where keys are digests."""
    order = np.argsort(words, kind="stable")
    inner = words[order]
    same = inner[1:] == inner[:-1]
    shared = np.zeros(len(words), dtype=np.bool_)
    shared[order[1:][same]] = True
    shared[order[:-1][same]] = True
    return np.flatnonzero(shared)


def _row(key: Key, content: bytes) -> bytes:
    return _half(_encode(key)) + _half(content)


def _half(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:_HALF]


@lru_cache(maxsize=64)
def _before_id(session_id: str, producer_id: str) -> bytes:
    """The JSON of an event's key up to its id, which alone differs among the events of a source."""
    return _encode(("event", session_id, producer_id))[:-1] + b","


_MARK = _half(b"through, second form")  # of rows of another form nothing is known: they are made anew
