"""Streams that run alike on both sides: their records pair place by place, all at once (CP-2, CP-17).

Only where the rules of the other modules would pair the same: a stream of which anything could be paired otherwise is
left to them. What is compared here are columns, so that nothing is done record by record.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from paritrace.correspondence.columns import Columns, Numbers, columns_of, mixed
from paritrace.correspondence.records import Records, Scopes
from paritrace.correspondence.scopes import ROOT, Extent, extent

ScopePairs = list[tuple[int, int]]


class Span(NamedTuple):
    """One congruent stream: from which place of the aligned records to which, and its scope pairs in their order."""

    start: int
    end: int
    scopes: ScopePairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Congruent:
    """The records of congruent streams, aligned: record `a[k]` pairs with `b[k]`.

    `late` are those that wait for the linked streams' own turn.
    """

    a: Numbers
    b: Numbers
    late: Numbers
    labelled: Numbers
    linked: Numbers
    entries: Numbers
    spans: list[Span]


@dataclass(slots=True)
class _Aligned:
    """Both sides' records of streams of equal length, place by place; `number` says which stream."""

    a: Numbers
    b: Numbers
    number: Numbers
    streams: list[int]

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Number, first place and end of each stream."""
        ends: list[int] = (np.flatnonzero(np.diff(self.number, append=-1)) + 1).tolist()
        for start, end in zip([0, *ends], ends, strict=False):
            yield int(self.number[start]), start, end

    def only(self, wanted: Numbers) -> "_Aligned":
        """The streams of which `wanted` is true."""
        kept = wanted[self.number]
        return _Aligned(self.a[kept], self.b[kept], self.number[kept], self.streams)

    def without(self, bad: Numbers) -> "_Aligned":
        """The streams without a bad place."""
        wanted = np.bincount(self.number[bad], minlength=len(self.streams)) == 0
        return self.only(wanted)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How the scopes of a stream pair: the pairs, and the entries of siblings that only order tells apart."""

    pairs: ScopePairs
    alike: list[list[tuple[int, int]]]  # places of their last entries in the stream, on both sides


def congruent(a: Records, b: Records) -> Congruent:
    """Find the streams that pair place by place."""
    columns = columns_of(a, b)
    aligned = _aligned(*columns)
    aligned = aligned.without(_unlike(*columns, aligned))
    aligned = aligned.without(_moved(*columns, aligned))
    shapes = _shapes((a, b), columns, aligned)
    aligned = aligned.only(np.array([stream in shapes for stream in aligned.streams], dtype=np.bool_))
    aligned = _with_links(*columns, aligned)
    labelled = columns[0].labels[aligned.a] != 0
    linked = (columns[0].links[aligned.a] >= 0) & ~labelled
    return Congruent(
        a=aligned.a,
        b=aligned.b,
        late=_late(columns[0], aligned, labelled=labelled, linked=linked),
        labelled=labelled,
        linked=linked,
        entries=columns[0].entries[aligned.a],
        spans=[Span(start, end, shapes[aligned.streams[number]]) for number, start, end in aligned.spans()],
    )


def _aligned(a: Columns, b: Columns) -> _Aligned:
    """The records of streams that have equally many on both sides."""
    rising = np.sort(np.concatenate((a.streams, b.streams)))
    values = rising[np.diff(rising, prepend=rising[:1] - 1) != 0]  # `np.union1d` loads all of `numpy.ma` first
    at = tuple(np.searchsorted(values, side.streams) for side in (a, b))
    counts = tuple(np.bincount(places, minlength=len(values)) for places in at)
    wanted = counts[0] == counts[1]
    first, second = (order[wanted[places[order]]] for places in at for order in (np.argsort(places, kind="stable"),))
    return _Aligned(first, second, at[0][first], values.tolist())


def _unlike(a: Columns, b: Columns, of: _Aligned) -> Numbers:
    """The places at which the sides differ in anything but their inputs."""
    unlike: Numbers = (a.links[of.a] >= 0) != (b.links[of.b] >= 0)
    for name in ("keys", "layers", "entries", "replays", "labels", "names"):
        unlike |= getattr(a, name)[of.a] != getattr(b, name)[of.b]
    return unlike


def _moved(a: Columns, b: Columns, of: _Aligned) -> Numbers:
    """The places whose inputs differ and stand elsewhere in the stream of the other side, at an equal key."""
    with np.errstate(over="ignore"):
        ours, theirs = (
            mixed(mixed(side.keys[at].astype(np.uint64) + mixed(of.number.astype(np.uint64))) ^ _words(side, at))
            for side, at in ((a, of.a), (b, of.b))
        )
    seen_a, seen_b = a.anchored[of.a], b.anchored[of.b]
    other = (seen_a != seen_b) | (seen_a & (ours != theirs))
    moved = np.zeros(len(other), dtype=np.bool_)
    for words, seen, elsewhere in ((ours, seen_a, theirs[seen_b]), (theirs, seen_b, ours[seen_a])):
        places = np.flatnonzero(other & seen)
        moved[places[_among(words[places], elsewhere)]] = True
    return moved


def _among(words: Numbers, those: Numbers) -> Numbers:
    """Which words are among those: by sorting, since a table of millions of random words misses every cache."""
    if not len(words) or not len(those):
        return np.zeros(len(words), dtype=np.bool_)
    rising, order = np.sort(those), np.argsort(words)
    places = np.searchsorted(rising, words[order])
    found = np.empty(len(words), dtype=np.bool_)
    found[order] = rising[np.minimum(places, len(rising) - 1)] == words[order]
    return found


def _words(side: Columns, at: Numbers) -> Numbers:
    return mixed(side.anchors[at].astype(np.uint64))


# --- scopes --------------------------------------------------------------------------------------------------------


def _shapes(records: tuple[Records, Records], columns: tuple[Columns, Columns], of: _Aligned) -> dict[int, ScopePairs]:
    """The scope pairs of each stream whose scopes pair as its records do; steps that repeat share one list."""
    a, b = columns
    known: dict[tuple[bytes, ...], _Shape | None] = {}
    found: dict[int, ScopePairs] = {}
    for number, start, end in of.spans():
        first, second = of.a[start:end], of.b[start:end]
        both = (a.scopes[first], b.scopes[second])
        key = (both[0].tobytes(), both[1].tobytes(), a.entries[first].tobytes())
        if key not in known:
            known[key] = _shape(records, (first, second), both)
        shape = known[key]
        if shape is not None and all(_in_order(a, b, first, second, places=places) for places in shape.alike):
            found[of.streams[number]] = shape.pairs
    return found


def _in_order(a: Columns, b: Columns, first: Numbers, second: Numbers, *, places: list[tuple[int, int]]) -> bool:
    """Whether siblings of one name stay the nth of them: none has the inputs that another has on the other side."""
    ours = [_anchor(a, first, place) for place, _ in places]
    theirs = [_anchor(b, second, place) for _, place in places]
    other = [(x, y) for x, y in zip(ours, theirs, strict=True) if x != y]
    return not any(x in theirs for x, _ in other if x is not None) and not any(
        y in ours for _, y in other if y is not None
    )


def _anchor(side: Columns, items: Numbers, place: int) -> int | None:
    i = int(items[place]) if place >= 0 else -1
    return int(side.anchors[i]) if i >= 0 and side.anchored[i] else None


def _shape(
    records: tuple[Records, Records], items: tuple[Numbers, Numbers], scopes: tuple[Numbers, Numbers]
) -> _Shape | None:
    """Pair the scopes of a stream from the root down; None unless the records pair place by place."""
    a, b = (extent(side, at.tolist()) for side, at in zip(records, items, strict=True))
    shape = _Shape([(ROOT, ROOT)], [])
    for pair in shape.pairs:  # grows while it is read: breadth first
        more = _children((records[0].tree, records[1].tree), (a, b), pair)
        if more is None:
            return None
        shape.pairs.extend(sorted((pair for group in more for pair in group), key=lambda pair: a.first[pair[0]]))
        last = [[(_last(a, items[0], x), _last(b, items[1], y)) for x, y in group] for group in more if len(group) > 1]
        shape.alike.extend(last)
    partner = dict(shape.pairs)
    ours: list[int] = scopes[0].tolist()
    return shape if [partner[scope] for scope in ours] == scopes[1].tolist() else None


def _children(
    trees: tuple[Scopes, Scopes], of: tuple[Extent, Extent], parents: tuple[int, int]
) -> list[ScopePairs] | None:
    """Children of one name and class, the nth with the nth; None when there are not equally many."""
    alike: dict[tuple[str, str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side in (0, 1):
        for scope in of[side].children.get(parents[side], []):
            alike[trees[side].names[scope], trees[side].facts[scope]][side].append(scope)
    if any(len(ours) != len(theirs) for ours, theirs in alike.values()):
        return None
    return [list(zip(ours, theirs, strict=True)) for ours, theirs in alike.values()]


def _last(of: Extent, items: Numbers, scope: int) -> int:
    """The place in its stream of the last entry of a scope, -1 if it has none."""
    entries: Sequence[int] = of.entry.get(scope, ())
    return int(np.searchsorted(items, entries[-1])) if entries else -1


NO_PLACES = np.array([], dtype=np.int64)
_NONE = np.array([], dtype=np.bool_)
NOTHING_ALIKE = Congruent(a=NO_PLACES, b=NO_PLACES, late=_NONE, labelled=_NONE, linked=_NONE, entries=_NONE, spans=[])


# --- links ---------------------------------------------------------------------------------------------------------


def _with_links(a: Columns, b: Columns, of: _Aligned) -> _Aligned:
    """Only streams whose linked records follow from pairs of congruent streams, as long as that leaves one out."""
    while True:
        partner = np.full(len(a.links), -1)
        partner[of.a] = of.b
        linked = (a.links[of.a] >= 0) & (a.labels[of.a] == 0)
        bad = linked & (partner[a.links[of.a]] != b.links[of.b])
        if not bad.any():
            return of
        of = of.without(bad)


def _late(a: Columns, of: _Aligned, *, labelled: Numbers, linked: Numbers) -> Numbers:
    """Records of linked streams that follow from nothing wait for their turn, and so does what follows from them."""
    streams = np.zeros(len(of.streams), dtype=np.bool_)
    streams[of.number[labelled | linked]] = True
    late = np.zeros(len(a.links), dtype=np.bool_)
    late[of.a] = streams[of.number] & ~labelled & ~linked
    targets = np.where(linked, a.links[of.a], -1)
    while True:
        more = linked & late[targets] & ~late[of.a]
        if not more.any():
            found: Numbers = late[of.a]
            return found
        late[of.a[more]] = True
