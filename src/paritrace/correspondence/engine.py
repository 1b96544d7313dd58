"""The engine: two sides of neutral records in, their pairing out (CP-1 to CP-3c)."""

from array import array
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from paritrace.correspondence.across import pair_across
from paritrace.correspondence.columns import Numbers
from paritrace.correspondence.congruent import NOTHING_ALIKE, Congruent, congruent
from paritrace.correspondence.dataflow import Dataflow, Homes
from paritrace.correspondence.links import Followers, followers, give_reasons, pair_followers, pair_labelled
from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.placewise import pair_alike, settle_alike
from paritrace.correspondence.records import Records
from paritrace.correspondence.scopes import Extent, extent, pair_scopes
from paritrace.correspondence.sequences import Fixed, pair_sequences
from paritrace.correspondence.vocabulary import Basis, Unpaired


@dataclass(frozen=True, slots=True, kw_only=True)
class Correspondence:
    """A finished pairing, and for each record the id of the paired scope that it stands in (-1: none)."""

    pairing: Pairing
    homes: Homes


def correspond(a: Records, b: Records) -> Correspondence:
    """Pair two sides; swapping them mirrors the result exactly, and outputs have no say (CP-4)."""
    return _corresponding(a, b, congruent(a, b))


def correspond_singly(a: Records, b: Records) -> Correspondence:
    """The same, record by record even where streams run alike: what `correspond` is held against."""
    return _corresponding(a, b, NOTHING_ALIKE)


def _corresponding(a: Records, b: Records, alike: Congruent) -> Correspondence:
    pairing = Pairing(a, b)
    homes = (array("q", [-1]) * len(a), array("q", [-1]) * len(b))
    streams_a, streams_b = _streams(a, alike.a), _streams(b, alike.b)
    both = [stream for stream in streams_a if stream in streams_b]
    _missing(pairing, streams_a, streams_b)
    extents = {stream: (extent(a, streams_a[stream]), extent(b, streams_b[stream])) for stream in both}
    scopes = {stream: pair_scopes(pairing, *extents[stream]) for stream in both}
    settle_alike(pairing, alike, homes=homes)
    for stream in both:
        _settle_in(pairing, stream, extents=extents[stream], pairs=scopes[stream], homes=homes)
    rest = (_items(streams_a), _items(streams_b))
    of = (followers(a, rest[0]), followers(b, rest[1]))
    linked = {a.streams[i] for i in rest[0] if a.links[i] >= 0 or a.labels[i]}
    linked |= {b.streams[j] for j in rest[1] if b.links[j] >= 0 or b.labels[j]}
    pair_alike(pairing, alike, late=False, followed=of[0])
    for stream in both:
        if stream not in linked:
            _pair_in(pairing, extents=extents[stream], pairs=scopes[stream])
    pair_labelled(pairing)
    _spread(pairing, of=of, flow=Dataflow(pairing, homes=homes, leave_out=linked))
    pair_alike(pairing, alike, late=True, followed=of[0])
    for stream in both:
        if stream in linked:
            _pair_in(pairing, extents=extents[stream], pairs=scopes[stream])
    _spread(pairing, of=of, flow=Dataflow(pairing, homes=homes))
    pair_across(pairing)
    if pairing.fresh:
        _spread(pairing, of=of, flow=Dataflow(pairing, homes=homes))
    give_reasons(pairing)
    _mark_declared(pairing)
    return Correspondence(pairing=pairing, homes=homes)


def _mark_declared(pairing: Pairing) -> None:
    """A pair that stands on a declared name says so, whichever rule found it."""
    ours = {i for i in pairing.a.declared if pairing.partner_a[i] >= 0}
    theirs = {pairing.partner_b[j] for j in pairing.b.declared if pairing.partner_b[j] >= 0}
    for i in ours | theirs:
        pairing.basis[i] = Basis.DECLARED


def _streams(side: Records, alike: Numbers) -> dict[Hashable, list[int]]:
    """The records that are not in `alike`, by stream."""
    left = np.ones(len(side), dtype=np.bool_)
    left[alike] = False
    found: dict[Hashable, list[int]] = defaultdict(list)
    for i in np.flatnonzero(left).tolist():
        found[side.streams[i]].append(i)
    return dict(found)


def _items(streams: dict[Hashable, list[int]]) -> list[int]:
    return sorted(i for items in streams.values() for i in items)


def _missing(pairing: Pairing, a: dict[Hashable, list[int]], b: dict[Hashable, list[int]]) -> None:
    for stream, items in a.items():
        if stream not in b:
            pairing.leave(items, [], Unpaired.STREAM_MISSING)
    for stream, items in b.items():
        if stream not in a:
            pairing.leave([], items, Unpaired.STREAM_MISSING)


def _settle_in(
    pairing: Pairing,
    stream: Hashable,
    *,
    extents: tuple[Extent, Extent],
    pairs: Sequence[tuple[int, int]],
    homes: "tuple[array[int], array[int]]",
) -> None:
    """Note which paired scope each record stands in, and say of the others that their scope has no partner."""
    for scope_a, scope_b in pairs:
        home = len(pairing.scope_pairs)
        pairing.scope_pairs.append((stream, scope_a, scope_b))
        for side, scope in enumerate((scope_a, scope_b)):
            for where in (extents[side].own, extents[side].entry):
                for i in where.get(scope, ()):
                    homes[side][i] = home
    for side, reasons in enumerate((pairing.reasons_a, pairing.reasons_b)):
        for where in (extents[side].own, extents[side].entry):
            for items in where.values():
                reasons.update((i, Unpaired.SCOPE_UNPAIRED) for i in items if homes[side][i] < 0)


def _pair_in(pairing: Pairing, *, extents: tuple[Extent, Extent], pairs: Sequence[tuple[int, int]]) -> None:
    """Pair the entries of paired scopes, then the records directly in them, layer by layer."""
    partner = dict(pairs)
    for scope_a, scope_b in pairs:
        _pair_entries(pairing, extents[0].entry.get(scope_a, []), extents[1].entry.get(scope_b, []))
        fixed = [
            Fixed(extents[0].first[child], extents[1].first[partner[child]])
            for child in extents[0].children.get(scope_a, [])
            if child in partner
        ]
        _pair_own(pairing, extents[0].own.get(scope_a, []), extents[1].own.get(scope_b, []), fixed=fixed)


def _pair_entries(pairing: Pairing, a: Sequence[int], b: Sequence[int]) -> None:
    """Pair the entries of a paired scope from the innermost out: a wrapper on one side only stays alone (CP-6)."""
    free_a = [i for i in a if pairing.partner_a[i] < 0 and pairing.a.links[i] < 0]
    free_b = [j for j in b if pairing.partner_b[j] < 0 and pairing.b.links[j] < 0]
    for i, j in zip(reversed(free_a), reversed(free_b), strict=False):
        pairing.pair(i, j, basis=Basis.SCOPE)
    rest_a = [i for i in free_a if pairing.partner_a[i] < 0]
    rest_b = [j for j in free_b if pairing.partner_b[j] < 0]
    pairing.leave(rest_a, rest_b, Unpaired.SCOPE_UNPAIRED)


def _pair_own(pairing: Pairing, a: Sequence[int], b: Sequence[int], *, fixed: Sequence[Fixed]) -> None:
    """Pair the records directly in a paired scope; linked ones that are paired already serve as anchors."""
    links = [Fixed(i, pairing.partner_a[i]) for i in a if pairing.partner_a[i] >= 0]
    inside = set(b)
    anchors = [*fixed, *(link for link in links if link.place_b in inside)]
    layers_a, layers_b = _layers(pairing.a, pairing.partner_a, a), _layers(pairing.b, pairing.partner_b, b)
    for layer in sorted(layers_a.keys() | layers_b.keys()):
        pair_sequences(pairing, layers_a.get(layer, []), layers_b.get(layer, []), fixed=anchors)


def _layers(side: Records, partners: Sequence[int], items: Sequence[int]) -> dict[int, list[int]]:
    """The unlinked, unpaired records of a scope by layer."""
    found: dict[int, list[int]] = defaultdict(list)
    for i in items:
        if partners[i] < 0 and side.links[i] < 0 and not side.labels[i]:
            found[side.layers[i]].append(i)
    return found


def _spread(pairing: Pairing, *, of: tuple[Followers, Followers], flow: Dataflow) -> None:
    """Follow fresh pairs to what links to them and what flows from them, until nothing new is paired."""
    while True:
        while pairing.fresh:
            i, j = pairing.fresh.pop()
            pair_followers(pairing, i, j, of=of)
            flow.follow(i, j)
        if not flow.settle():
            return
