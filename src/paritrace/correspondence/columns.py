"""The columns of both sides as numbers, so that many records are compared at once (CP-17)."""

from array import array
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paritrace.correspondence.coded import CodedTexts
from paritrace.correspondence.records import Records

Numbers = npt.NDArray[Any]
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One side's records; equal numbers mean equal values on both sides. A label of 0 is none."""

    streams: Numbers
    layers: Numbers
    scopes: Numbers
    entries: Numbers
    keys: Numbers
    links: Numbers
    replays: Numbers
    labels: Numbers
    names: Numbers
    anchors: Numbers  # of `anchored` records: their inputs
    anchored: Numbers


def columns_of(a: Records, b: Records) -> tuple[Columns, Columns]:
    """Both sides' columns."""
    streams, layers, keys = _alike(a.streams, b.streams), _alike(a.layers, b.layers), _alike(a.keys, b.keys)
    names = _alike(_names(a), _names(b))
    anchors = _alike(*(side.inputs if side.anchored is not None else _anchors(side) for side in (a, b)))
    known: dict[str, int] = {}
    labels = (_rare(a.labels, known), _rare(b.labels, known))
    first, second = (
        Columns(
            streams=streams[number],
            layers=layers[number],
            scopes=np.asarray(side.scopes, dtype=np.int64),
            entries=np.asarray(side.entries, dtype=np.bool_),
            keys=keys[number],
            links=np.asarray(side.links, dtype=np.int64),
            replays=np.asarray(side.replays, dtype=np.bool_),
            labels=labels[number],
            names=names[number],
            anchors=anchors[number],
            anchored=_anchored(side),
        )
        for number, side in enumerate((a, b))
    )
    return first, second


def _names(side: Records) -> Sequence[Hashable]:
    return [side.names(i) for i in range(len(side))] if side.named is None else side.named


def _anchors(side: Records) -> Sequence[Hashable]:
    return [side.anchor_inputs(i) for i in range(len(side))]


def _anchored(side: Records) -> Numbers:
    if side.anchored is not None:
        return np.asarray(side.anchored, dtype=np.bool_)
    return np.array([side.anchor_inputs(i) is not None for i in range(len(side))], dtype=np.bool_)


def _alike(first: Sequence[Hashable], second: Sequence[Hashable]) -> tuple[Numbers, Numbers]:
    """Numbers stay what they are; anything else is numbered."""
    if _is_array(first) and _is_array(second):
        return np.asarray(first), np.asarray(second)
    return _interned((first, second))


def _is_array(column: Sequence[Hashable]) -> bool:
    return isinstance(column, array)


def _rare(texts: Sequence[str], known: dict[str, int]) -> Numbers:
    """Numbers of texts, of which nearly all are empty: those are 0."""
    if isinstance(texts, CodedTexts):
        numbers = [known.setdefault(text, len(known) + 1) if text else 0 for text in texts.texts]
        coded: Numbers = np.array(numbers, dtype=np.int64)[texts.codes]
        return coded
    found = np.zeros(len(texts), dtype=np.int64)
    for place in [place for place, text in enumerate(texts) if text]:
        found[place] = known.setdefault(texts[place], len(known) + 1)
    return found


def _interned(columns: Iterable[Sequence[Hashable]]) -> tuple[Numbers, Numbers]:
    known: dict[Hashable, int] = {}
    left, right = (np.array([known.setdefault(value, len(known)) for value in column], np.int64) for column in columns)
    return left, right


def mixed(words: Numbers) -> Numbers:
    """Spread every bit over all others (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(_MIX[0])
        words = (words ^ (words >> np.uint64(27))) * np.uint64(_MIX[1])
        found: Numbers = words ^ (words >> np.uint64(31))
        return found
