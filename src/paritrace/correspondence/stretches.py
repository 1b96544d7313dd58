"""Maximal unpaired stretches: what stands between two paired neighbours on one side or both (CP-8a, CP-21)."""

from collections import defaultdict
from collections.abc import Collection, Hashable
from dataclasses import dataclass, field

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
    of_a: list[int]
    of_b: list[int]


def stretches(of: Correspondence, *, leave_out: tuple[Collection[int], Collection[int]] = ((), ())) -> Stretches:
    """Find the stretches of a finished correspondence; records in `leave_out` take no part."""
    places: dict[tuple[int, Neighbours], int] = {}
    result = Stretches(found=[], of_a=[-1] * len(of.pairing.a), of_b=[-1] * len(of.pairing.b))
    for side in (0, 1):
        marks = _child_marks(of)
        for home, items in _items(of, side, leave_out[side], marks).items():
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
    of: Correspondence,
    side: int,
    leave_out: Collection[int],
    marks: tuple[dict[int, Neighbours], dict[int, Neighbours]],
) -> dict[int, list[tuple[int, Neighbours | None]]]:
    """For each paired scope its records and paired children by place; None marks an unpaired record."""
    records = (of.pairing.a, of.pairing.b)[side]
    partners = (of.pairing.partner_a, of.pairing.partner_b)[side]
    homes_of = _homes_by_scope(of, side)
    found: dict[int, list[tuple[int, Neighbours | None]]] = defaultdict(list)
    for index, partner in enumerate(partners):
        if index in leave_out:
            continue
        home = of.homes[side][index]
        if records.entries[index] and home >= 0 and partner >= 0:
            continue  # the paired entry of a paired scope: its mark stands in the parent scope
        if home < 0:
            home = _attached(records, homes_of, index)
            if home < 0:
                continue
        pair = None if partner < 0 else ((index, partner) if side == 0 else (partner, index))
        found[home].append((index, pair))
    for child, mark in marks[side].items():
        parent = _parent_home(of, side, child, homes_of)
        if parent >= 0:
            found[parent].append((mark[side], mark))
    return found


def _child_marks(of: Correspondence) -> tuple[dict[int, Neighbours], dict[int, Neighbours]]:
    """For each paired scope the first record of it on each side."""
    first: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for side in (0, 1):
        for index, home in enumerate(of.homes[side]):
            if home >= 0:
                first[side].setdefault(home, index)
    marks = {home: (index, first[1][home]) for home, index in first[0].items() if home in first[1]}
    return marks, marks


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
