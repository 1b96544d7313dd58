"""Pairing records through what they follow from: backward through forward, recompute through its original (CP-2a)."""

from collections import defaultdict
from collections.abc import Iterable

from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.records import Records
from paritrace.correspondence.sequences import Marks, matches, pair_sequences
from paritrace.correspondence.vocabulary import Basis, Unpaired

Followers = dict[int, dict[object, list[int]]]


def followers(side: Records, items: Iterable[int]) -> Followers:
    """For each record those of `items` that follow from it, by stream, layer and whether they repeat or answer it."""
    found: Followers = {}
    for i in items:
        link = side.links[i]
        if link >= 0 and not side.labels[i]:
            group = (side.streams[i], side.layers[i], side.replays[i])
            found.setdefault(link, defaultdict(list))[group].append(i)
    return found


def pair_followers(pairing: Pairing, i: int, j: int, *, of: tuple[Followers, Followers]) -> None:
    """Pair what follows from the pair (i, j): each group in order by key."""
    theirs = of[1].get(j)
    for group, ours in of[0].get(i, {}).items():
        free = [k for k in ours if pairing.partner_a[k] < 0]
        answers = [k for k in (theirs or {}).get(group, []) if pairing.partner_b[k] < 0]
        if free and answers:
            pair_sequences(pairing, free, answers, basis=Basis.BACKWARD_LINK)


def pair_labelled(pairing: Pairing) -> None:
    """Pair records whose name alone decides: gradient accumulation by parameter, buckets by what they hold (CP-2a)."""
    ours, theirs = _labelled(pairing.a, pairing.unpaired(0)), _labelled(pairing.b, pairing.unpaired(1))
    for mark, items in ours.items():
        if mark in theirs:
            pair_sequences(pairing, items, theirs[mark], basis=Basis.PARAMETER_NAME)
    alone_a = [i for mark, items in ours.items() if mark not in theirs for i in items]
    alone_b = [j for mark, items in theirs.items() if mark not in ours for j in items]
    for i, j in matches(_by_name(pairing.a, alone_a), _by_name(pairing.b, alone_b)):
        pairing.pair(i, j, basis=Basis.PARAMETER_ANCHOR)


def _by_name(side: Records, items: list[int]) -> Marks:
    """What names a labelled record by its parts: of two such records each may share parts with the other only."""
    return [((side.streams[i], side.layers[i], side.keys[i], name), i) for i in items for name in side.names(i)]


def _labelled(side: Records, items: Iterable[int]) -> dict[object, list[int]]:
    found: dict[object, list[int]] = defaultdict(list)
    for i in items:
        if side.labels[i]:
            found[side.streams[i], side.layers[i], side.labels[i]].append(i)
    return found


def give_reasons(pairing: Pairing) -> None:
    """Say of linked records without a partner whether what they follow from has none either."""
    sides = ((pairing.a, pairing.partner_a, pairing.reasons_a), (pairing.b, pairing.partner_b, pairing.reasons_b))
    for side, (records, partners, reasons) in enumerate(sides):
        for i in pairing.unpaired(side):
            link = records.links[i]
            if link >= 0 and not records.labels[i] and partners[link] < 0:
                reasons[i] = Unpaired.FORWARD_UNPAIRED
