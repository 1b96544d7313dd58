"""Holds the states that replicas share against each other, session by session (CP-25).

What the first rank shows is kept for the others to be compared with: 9 bytes for each value, boundary and distinct
shard, whatever the number of ranks. Of a state that parts, only its first parting is kept.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from paritrace.compare.checks_heads import Geometry
from paritrace.compare.checks_replicas import Replicas
from paritrace.compare.checks_result import Parting
from paritrace.compare.state_groups import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER

SHARED = (PARAMETER, GRADIENT, OPTIMIZER_STATE, BUFFER)
MOMENTS = ("begin", "batch", "grads")
NEVER = np.iinfo(np.int64).max
MOST_STEPS, MOST_TIMES = 1 << 40, 1 << 8  # beyond these, boundaries are no longer told apart in order
Values = npt.NDArray[np.uint64]
Known = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class Series(NamedTuple):
    """One state through the run: of one name, in one set of replicas, of one dtype and shape."""

    what: str
    name: str
    replica_set: int
    geometry: Geometry


Layout = tuple[Series, ...]


class When(NamedTuple):
    """A boundary of a step; `nth` tells apart what comes several times at one, as when an optimizer steps twice."""

    step: int
    moment: str
    nth: int

    @property
    def order(self) -> int:
        step = max(0, min(self.step, MOST_STEPS))
        return (step * len(MOMENTS) + MOMENTS.index(self.moment)) * MOST_TIMES + min(self.nth, MOST_TIMES - 1)


class Row(NamedTuple):
    """The values of one layout at one boundary on one rank; `known` is false where a value was not read."""

    rank: int
    when: When
    values: Values
    known: Known


class _Kept(NamedTuple):
    """The values of one layout at one boundary, and which ranks showed it, by the layout that they have."""

    values: Values
    known: Known
    ranks: dict[int, int]  # layout -> bits of ranks


class _Share(NamedTuple):
    """Which values of a layout are compared with those kept under another layout, or under its own."""

    home: int
    mine: Places
    theirs: Places


class _First(Struct):
    """The first parting of a series: the values of the ranks that differ from what was kept."""

    order: int
    when: When
    home: int
    others: dict[int, int]


class States:
    """Every state that replicas share; sessions may come in any order, one after the other."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.ranks: dict[Series, int] = {}  # bits of the ranks that showed it
        self.unread: dict[Series, int] = {}  # bits of the ranks on which it was not read at some boundary
        self._layouts: dict[Layout, int] = {}
        self._by_number: list[Layout] = []
        self._shares: list[tuple[_Share, ...]] = []
        self._homes: dict[Series, tuple[int, int]] = {}  # the layout and place under which its values are kept
        self._kept: dict[tuple[int, When], _Kept] = {}
        self._earliest: list[Places] = []  # by layout: order of the first parting known so far
        self._first: dict[Series, _First] = {}
        self._noted: set[tuple[int, int, bytes]] = set()

    def see(self, layout: Layout, row: Row, /) -> None:
        """Takes one row."""
        number = self._number(layout)
        self._note(number, row)
        for share in self._shares[number]:
            key = (share.home, row.when)
            kept = self._kept.get(key)
            if kept is None:
                size = len(self._by_number[share.home])
                kept = self._kept[key] = _Kept(np.zeros(size, np.uint64), np.zeros(size, np.bool_), {})
            self._hold(row, share, kept)
            kept.ranks[number] = kept.ranks.get(number, 0) | 1 << row.rank

    def partings(self) -> list[Parting]:
        """Returns the first parting of each series that parts, earliest first."""
        found = sorted(self._first.items(), key=lambda item: (item[1].order, item[0].what, item[0].name))
        return [self._parting(series, first) for series, first in found]

    def compared(self, what: str, /) -> list[Series]:
        """Returns the series of one group that two ranks or more showed."""
        return [series for series, ranks in self.ranks.items() if series.what == what and ranks.bit_count() > 1]

    def boundaries(self) -> dict[str, int]:
        """Returns, by group, at how many boundaries two ranks or more showed it."""
        found: dict[str, set[When]] = defaultdict(set)
        for (home, when), kept in self._kept.items():
            ranks = 0
            for bits in kept.ranks.values():
                ranks |= bits
            if ranks.bit_count() > 1:
                found[self._by_number[home][0].what].add(when)
        return {what: len(times) for what, times in found.items()}

    def _number(self, layout: Layout) -> int:
        known = self._layouts.get(layout)
        if known is not None:
            return known
        number = self._layouts[layout] = len(self._by_number)
        self._by_number.append(layout)
        self._earliest.append(np.full(len(layout), NEVER, np.int64))
        shared: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for place, series in enumerate(layout):
            home, at = self._homes.setdefault(series, (number, place))
            shared[home][0].append(place)
            shared[home][1].append(at)
        self._shares.append(
            tuple(
                _Share(home, np.array(mine, np.int64), np.array(theirs, np.int64))
                for home, (mine, theirs) in shared.items()
            )
        )
        return number

    def _note(self, number: int, row: Row) -> None:
        """Notes who showed what; a rank's rows of one layout mostly lack the same values, so this is done once."""
        key = (number, row.rank, row.known.tobytes())
        if key in self._noted:
            return
        self._noted.add(key)
        bit = 1 << row.rank
        for series, known in zip(self._by_number[number], row.known.tolist(), strict=True):
            self.ranks[series] = self.ranks.get(series, 0) | bit
            if not known:
                self.unread[series] = self.unread.get(series, 0) | bit

    def _hold(self, row: Row, share: _Share, kept: _Kept) -> None:
        mine, mine_known = row.values[share.mine], row.known[share.mine]
        theirs_known = kept.known[share.theirs]
        both = mine_known & theirs_known
        differs = both & (mine != kept.values[share.theirs])
        if differs.any():
            self._part(row, share, differs)
        fresh = mine_known & ~theirs_known
        if fresh.any():
            places = share.theirs[fresh]
            kept.values[places] = mine[fresh]
            kept.known[places] = True

    def _part(self, row: Row, share: _Share, differs: Known) -> None:
        """Keeps the first parting of each series; what parts later than what is known already is a consequence."""
        order, earliest = row.when.order, self._earliest[share.home]
        for at in np.flatnonzero(differs & (earliest[share.theirs] >= order)).tolist():
            place = int(share.theirs[at])
            series = self._by_number[share.home][place]
            first = self._first.get(series)
            if first is None or order < first.order:
                first = self._first[series] = _First(order, row.when, share.home, {})
                earliest[place] = order
            first.others[row.rank] = int(row.values[share.mine[at]])

    def _parting(self, series: Series, first: _First) -> Parting:
        kept = self._kept[first.home, first.when]
        showed = 0
        for layout, ranks in kept.ranks.items():
            if series in self._by_number[layout]:
                showed |= ranks
        sides: dict[int, list[int]] = defaultdict(list)
        for rank, value in sorted(first.others.items()):
            sides[value].append(rank)
        agreeing = [
            rank for rank in ranks_of(showed & ~self.unread.get(series, 0)) if rank not in first.others
        ] or ranks_of(showed & ~sum(1 << rank for rank in first.others))
        return Parting(
            what=series.what,
            name=series.name,
            step=first.when.step,
            moment=first.when.moment,
            sides=tuple(sorted(tuple(side) for side in (agreeing, *sides.values()))),
            basis=self.replicas.sets[series.replica_set].basis,
        )


def ranks_of(bits: int, /) -> list[int]:
    """Returns the ranks that bits stand for, rising."""
    return [rank for rank in range(bits.bit_length()) if bits >> rank & 1]
