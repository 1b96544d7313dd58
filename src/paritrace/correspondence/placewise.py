"""Applying what `congruent` found to a pairing, in the turns in which the other rules would have found it (CP-17)."""

from array import array
from collections.abc import Iterable

import numpy as np

from paritrace.correspondence.columns import Numbers
from paritrace.correspondence.congruent import Congruent, ScopePairs
from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.vocabulary import Basis


def settle_alike(pairing: Pairing, alike: Congruent, *, homes: "tuple[array[int], array[int]]") -> None:
    """Note which paired scope each record of congruent streams stands in."""
    ours, theirs = np.asarray(homes[0]), np.asarray(homes[1])
    scopes = np.asarray(pairing.a.scopes, dtype=np.int64)
    places: dict[int, Numbers] = {}
    for span in alike.spans:
        if id(span.scopes) not in places:
            places[id(span.scopes)] = _places(span.scopes, len(pairing.a.tree.parents))
        a, b = alike.a[span.start : span.end], alike.b[span.start : span.end]
        ours[a] = theirs[b] = len(pairing.scope_pairs) + places[id(span.scopes)][scopes[a]]
        stream = pairing.a.streams[int(a[0])]
        pairing.scope_pairs.extend((stream, x, y) for x, y in span.scopes)


def _places(pairs: ScopePairs, num_scopes: int) -> Numbers:
    """The place of each scope of `a` in the list of pairs."""
    found = np.zeros(num_scopes, dtype=np.int64)
    found[[scope for scope, _ in pairs]] = np.arange(len(pairs))
    return found


def pair_alike(pairing: Pairing, alike: Congruent, *, late: bool, followed: Iterable[int]) -> None:
    """Pair the records whose turn it is; of those in `followed`, records of other streams follow."""
    turn = alike.late if late else ~alike.late
    plain = ~alike.labelled & ~alike.linked
    for basis, which in (
        (Basis.PARAMETER_NAME, alike.labelled),
        (Basis.BACKWARD_LINK, alike.linked),
        (Basis.SCOPE, plain & alike.entries),
        (Basis.EQUAL_SEQUENCE, plain & ~alike.entries),
    ):
        places = np.flatnonzero(turn & which)
        pairing.pair_all(alike.a[places], alike.b[places], basis=basis)
    wanted = set(followed)
    if wanted:
        paired = wanted.intersection(alike.a[turn].tolist())
        pairing.fresh.extend((i, pairing.partner_a[i]) for i in sorted(paired))
