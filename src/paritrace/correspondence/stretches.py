"""Maximal unpaired stretches: what stands between two paired neighbours on one side or both (CP-8a, CP-21)."""

from array import array
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from paritrace.correspondence.engine import Correspondence
from paritrace.correspondence.records import Records
from paritrace.correspondence.scopes import ROOT

Neighbours = tuple[int, int]
START: Neighbours = (-1, -1)


@dataclass(slots=True, kw_only=True)
class Stretch:
    """Unpaired records of both sides between the same paired neighbours of one paired scope.

    `after` and `before` are indices (a, b) of the paired neighbours; (-1, -1) is an end of the scope. A paired child
    scope stands for its first record on each side.
    """

    home: int
    a: list[int] = field(default_factory=list[int])
    b: list[int] = field(default_factory=list[int])
    after: Neighbours = START
    before: Neighbours = START


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretches:
    """All stretches, and for each record of each side the one that it belongs to (-1: none)."""

    found: list[Stretch]
    of_a: "array[int]"
    of_b: "array[int]"


def stretches(of: Correspondence, *, leave_out: tuple[Collection[int], Collection[int]] = ((), ())) -> Stretches:
    """Find the stretches of a finished correspondence; records in `leave_out` take no part."""
    sizes = (len(of.pairing.a), len(of.pairing.b))
    result = Stretches(found=[], of_a=array("q", [-1]) * sizes[0], of_b=array("q", [-1]) * sizes[1])
    unpaired = [[i for i in of.pairing.unpaired(side) if i not in leave_out[side]] for side in (0, 1)]
    if not any(unpaired):
        return result
    places: dict[tuple[int, Neighbours], int] = {}
    marks = _child_marks(of)
    for side in (0, 1):
        for home, items in _items(of, side, unpaired[side], marks).items():
            _cut(side, result, home=home, items=items, places=places)
    return result


def _cut(
    side: int,
    result: Stretches,
    *,
    home: int,
    items: list[tuple[int, Neighbours | None]],
    places: dict[tuple[int, Neighbours], int],
) -> None:
    belongs = result.of_a if side == 0 else result.of_b
    after = START
    waiting: Stretch | None = None
    for index, neighbours in sorted(items, key=lambda item: item[0]):
        if neighbours is not None:
            after = neighbours
            if waiting is not None and waiting.before == START:
                waiting.before = neighbours
            waiting = None
            continue
        place = places.get((home, after))
        if place is None:
            place = places[home, after] = len(result.found)
            result.found.append(Stretch(home=home, after=after))
        waiting = result.found[place]
        (waiting.a if side == 0 else waiting.b).append(index)
        belongs[index] = place


def _items(
    of: Correspondence, side: int, unpaired: Sequence[int], marks: dict[int, Neighbours]
) -> dict[int, list[tuple[int, Neighbours | None]]]:
    """For each paired scope with unpaired records its records and paired children by place; None marks the former."""
    homes_of = _homes_by_scope(of, side)
    homes = {i: _home(of, side, i, homes_of) for i in unpaired}
    wanted = set(homes.values()) - {-1}
    items: list[tuple[int, int, Neighbours | None]] = [(i, home, None) for i, home in homes.items()]
    for i, partner in _paired_in(of, side, wanted):
        items.append((i, _home(of, side, i, homes_of), (i, partner) if side == 0 else (partner, i)))
    found: dict[int, list[tuple[int, Neighbours | None]]] = {}
    for i, home, pair in sorted(items):
        if home in wanted:
            found.setdefault(home, []).append((i, pair))
    for child, mark in marks.items():
        parent = _parent_home(of, side, child, homes_of)
        if parent in wanted:
            found[parent].append((mark[side], mark))
    return found


def _paired_in(of: Correspondence, side: int, homes: Collection[int]) -> Iterator[tuple[int, int]]:
    """The paired records of these scopes, and those whose own scope has no partner.

    The paired entry of a paired scope is left out: its mark stands in the parent scope.
    """
    partners = np.asarray((of.pairing.partner_a, of.pairing.partner_b)[side])
    entries = np.asarray((of.pairing.a, of.pairing.b)[side].entries, dtype=np.bool_)
    here = np.asarray(of.homes[side])
    inside = (here < 0) | (~entries & np.isin(here, list(homes)))
    places = np.flatnonzero((partners >= 0) & inside)
    return zip(places.tolist(), partners[places].tolist(), strict=True)


def _home(of: Correspondence, side: int, index: int, homes: dict[tuple[Hashable, int], int]) -> int:
    """The paired scope that a record stands in, or that its own scope, which has no partner, stands in; -1: none."""
    home = of.homes[side][index]
    return home if home >= 0 else _attached((of.pairing.a, of.pairing.b)[side], homes, index)


def _child_marks(of: Correspondence) -> dict[int, Neighbours]:
    """For each paired scope the first record of it on each side."""
    first, second = (_firsts(np.asarray(homes)) for homes in of.homes)
    return {home: (index, second[home]) for home, index in first.items() if home in second}


def _firsts(homes: npt.NDArray[np.int64]) -> dict[int, int]:
    values, places = np.unique(homes, return_index=True)
    return {home: place for home, place in zip(values.tolist(), places.tolist(), strict=True) if home >= 0}


def _homes_by_scope(of: Correspondence, side: int) -> dict[tuple[Hashable, int], int]:
    return {(stream, pair[side]): home for home, (stream, *pair) in enumerate(of.pairing.scope_pairs)}


def _attached(records: Records, homes: dict[tuple[Hashable, int], int], index: int) -> int:
    """The paired scope around a record whose own scope has no partner."""
    scope = records.scopes[index]
    stream = records.streams[index]
    while (stream, scope) not in homes:
        if scope == ROOT:
            return -1
        scope = records.tree.parents[scope]
    return homes[stream, scope]


def _parent_home(of: Correspondence, side: int, home: int, homes: dict[tuple[Hashable, int], int]) -> int:
    stream, *pair = of.pairing.scope_pairs[home]
    scope = pair[side]
    if scope == ROOT:
        return -1
    tree = (of.pairing.a, of.pairing.b)[side].tree
    return homes.get((stream, tree.parents[scope]), -1)
