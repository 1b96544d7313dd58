"""Pairing two sequences of records: equal ones in order, unequal ones by anchors (CP-2, CP-3)."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from paritrace.correspondence.crossing import surviving
from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.records import Records
from paritrace.correspondence.vocabulary import Basis, Unpaired

DECIDED = frozenset({Basis.BACKWARD_LINK, Basis.PARAMETER_NAME})
"""Bases that name why two *groups* belong together: what decides inside the group does not replace them."""


class Fixed(NamedTuple):
    """An anchor that stands from elsewhere: a paired child scope or a paired linked record, by its place."""

    place_a: int
    place_b: int


class Anchor(NamedTuple):
    """A candidate pair inside the two sequences, or a `Fixed` one (basis None)."""

    place_a: int
    place_b: int
    basis: Basis | None
    same_inputs: bool


def pair_sequences(
    pairing: Pairing, a: Sequence[int], b: Sequence[int], *, fixed: Sequence[Fixed] = (), basis: Basis | None = None
) -> None:
    """Pair two sequences of unpaired records, given as rising indices; `basis` overrides the rule's own name."""
    keys_a = [pairing.a.keys[i] for i in a]
    if keys_a == [pairing.b.keys[j] for j in b]:
        _in_order(pairing, a, b, basis=basis or Basis.EQUAL_SEQUENCE)
        return
    anchors = sorted([*(Anchor(f.place_a, f.place_b, None, False) for f in fixed), *_anchors(pairing, a, b)])
    alive = surviving([anchor.place_b for anchor in anchors])
    kept = [anchor for anchor, lives in zip(anchors, alive, strict=True) if lives]
    dropped = [anchor for anchor, lives in zip(anchors, alive, strict=True) if not lives]
    _keep(pairing, kept, basis=basis)
    taken = _drop(pairing, dropped, basis=basis)
    _between(
        pairing, [i for i in a if i not in taken[0]], [j for j in b if j not in taken[1]], anchors=kept, basis=basis
    )


def _keep(pairing: Pairing, anchors: Iterable[Anchor], *, basis: Basis | None) -> None:
    for anchor in anchors:
        if anchor.basis is not None:
            pairing.pair(anchor.place_a, anchor.place_b, basis=basis or anchor.basis)


def _drop(pairing: Pairing, anchors: Iterable[Anchor], *, basis: Basis | None) -> tuple[set[int], set[int]]:
    """Pair the crossed anchors that had equal inputs, as reordered; return the records that leave the sequences."""
    taken: tuple[set[int], set[int]] = (set(), set())
    for anchor in anchors:
        if anchor.basis is None:
            continue
        if anchor.same_inputs:
            pairing.pair(anchor.place_a, anchor.place_b, basis=basis or anchor.basis, reordered=True)
        else:
            pairing.leave([anchor.place_a], [anchor.place_b], Unpaired.ANCHOR_CROSSED)
        taken[0].add(anchor.place_a)
        taken[1].add(anchor.place_b)
    return taken


def _between(
    pairing: Pairing, a: Sequence[int], b: Sequence[int], *, anchors: Sequence[Anchor], basis: Basis | None
) -> None:
    """Pair equal segments between consecutive anchors in order; say of the others that they are unequal."""
    reason = Unpaired.UNEQUAL_BETWEEN_ANCHORS if anchors else Unpaired.NO_ANCHOR
    segments_a = _segments(a, [anchor.place_a for anchor in anchors])
    segments_b = _segments(b, [anchor.place_b for anchor in anchors])
    for left, right in zip(segments_a, segments_b, strict=True):
        if [pairing.a.keys[i] for i in left] == [pairing.b.keys[j] for j in right]:
            _in_order(pairing, left, right, basis=basis or Basis.BETWEEN_ANCHORS)
        else:
            pairing.leave(left, right, reason)


def _segments(items: Sequence[int], borders: Sequence[int]) -> list[list[int]]:
    """Cut rising places at rising borders; the borders themselves belong to no segment."""
    segments: list[list[int]] = []
    start = 0
    for border in borders:
        end = start
        while end < len(items) and items[end] < border:
            end += 1
        segments.append(list(items[start:end]))
        start = end + 1 if end < len(items) and items[end] == border else end
    segments.append(list(items[start:]))
    return segments


def _in_order(pairing: Pairing, a: Sequence[int], b: Sequence[int], *, basis: Basis) -> None:
    """Pair equal key sequences; inside a group of one key identity outranks order (CP-2)."""
    inputs_a, inputs_b = pairing.a.inputs, pairing.b.inputs
    if all(inputs_a[i] == inputs_b[j] for i, j in zip(a, b, strict=True)):
        for i, j in zip(a, b, strict=True):
            pairing.pair(i, j, basis=basis)
        return
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place, i in enumerate(a):
        groups[pairing.a.keys[i]].append(place)
    for places in groups.values():
        _group(pairing, [a[place] for place in places], [b[place] for place in places], basis=basis)


def _group(pairing: Pairing, a: Sequence[int], b: Sequence[int], *, basis: Basis) -> None:
    """Pair equally many records of one key: by name, by inputs that occur once on each side, the rest in order."""
    found: dict[int, tuple[int, Basis]] = {}
    if len(a) > 1:
        for i, j, why in _identities(pairing, a, b):
            found[i] = (j, why)
    taken = {j for j, _ in found.values()}
    rest = iter([j for j in b if j not in taken])
    for i, in_place in zip(a, b, strict=True):
        j, why = found[i] if i in found else (next(rest), basis)
        moved = i in found and j != in_place
        pairing.pair(i, j, basis=why if moved and basis not in DECIDED else basis, reordered=moved)


def _identities(pairing: Pairing, a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int, Basis]]:
    named = matches(_by_name(pairing.a, a), _by_name(pairing.b, b))
    found = [(i, j, Basis.PARAMETER_ANCHOR) for i, j in named]
    used_a, used_b = {i for i, _ in named}, {j for _, j in named}
    same = matches(_by_inputs(pairing.a, a), _by_inputs(pairing.b, b))
    found += [(i, j, Basis.INPUT_IDENTITY) for i, j in same if i not in used_a and j not in used_b]
    return found


def _anchors(pairing: Pairing, a: Sequence[int], b: Sequence[int]) -> list[Anchor]:
    """The candidate anchors of two sequences; a record serves in one at most, the strongest first."""
    rules = (
        (Basis.UNIQUE_KEY, _by_key),
        (Basis.PARAMETER_ANCHOR, _by_name),
        (Basis.INPUT_ANCHOR, _by_inputs),
    )
    found: list[Anchor] = []
    free_a, free_b = set(a), set(b)
    for basis, marks_of in rules:
        for i, j in matches(marks_of(pairing.a, a), marks_of(pairing.b, b)):
            if i in free_a and j in free_b:
                free_a.remove(i)
                free_b.remove(j)
                found.append(Anchor(i, j, basis, _same_inputs(pairing, i, j)))
    return found


def _same_inputs(pairing: Pairing, i: int, j: int) -> bool:
    inputs = pairing.a.anchor_inputs(i)
    return inputs is not None and inputs == pairing.b.anchor_inputs(j)


Marks = list[tuple[Hashable, int]]


def _by_key(side: Records, items: Sequence[int]) -> Marks:
    return [(side.keys[i], i) for i in items]


def _by_name(side: Records, items: Sequence[int]) -> Marks:
    return [((side.keys[i], name), i) for i in items for name in side.names(i)]


def _by_inputs(side: Records, items: Sequence[int]) -> Marks:
    return [((side.keys[i], inputs), i) for i in items if (inputs := side.anchor_inputs(i)) is not None]


def matches(a: Marks, b: Marks) -> list[tuple[int, int]]:
    """The records whose mark occurs exactly once on each side; records matched in two ways at once are left out."""
    once_a, once_b = _once(a), _once(b)
    pairs = {(i, once_b[mark]) for mark, i in once_a.items() if mark in once_b}
    uses_a = Counter(i for i, _ in pairs)
    uses_b = Counter(j for _, j in pairs)
    return sorted((i, j) for i, j in pairs if uses_a[i] == 1 and uses_b[j] == 1)


def _once(marks: Marks) -> dict[Hashable, int]:
    counts = Counter(mark for mark, _ in marks)
    return {mark: i for mark, i in marks if counts[mark] == 1}
