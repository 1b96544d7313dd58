"""Pairing the scopes (module instances) of one stream, level by level, before any record inside them (CP-1)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.records import Records

ROOT = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What one side of one stream holds of the scope tree."""

    children: dict[int, list[int]]  # scope -> child scopes in order of first appearance
    first: dict[int, int]  # scope -> index of the first record in it or below
    entry: dict[int, list[int]]  # scope -> the records that enter it
    own: dict[int, list[int]]  # scope -> the records directly in it, entries left out


def extent(side: Records, items: Sequence[int]) -> Extent:
    """Sort one stream's records into the scopes that they stand in."""
    parents = side.tree.parents
    children: dict[int, list[int]] = defaultdict(list)
    first: dict[int, int] = {}
    entry: dict[int, list[int]] = defaultdict(list)
    own: dict[int, list[int]] = defaultdict(list)
    for i in items:
        scope = side.scopes[i]
        (entry if side.entries[i] else own)[scope].append(i)
        while scope not in first:
            first[scope] = i
            if scope != ROOT:
                children[parents[scope]].append(scope)
            scope = parents[scope]
    return Extent(children=children, first=first, entry=entry, own=own)


def pair_scopes(pairing: Pairing, a: Extent, b: Extent) -> list[tuple[int, int]]:
    """Pair scopes from the root down; a scope without a partner takes everything below it along."""
    pairs = [(ROOT, ROOT)]
    for parent_a, parent_b in pairs:  # grows while it is read: breadth first
        pairs += _children(pairing, a, b, parents=(parent_a, parent_b))
    return pairs


def _children(pairing: Pairing, a: Extent, b: Extent, *, parents: tuple[int, int]) -> list[tuple[int, int]]:
    left, right = a.children.get(parents[0], []), b.children.get(parents[1], [])
    tree_a, tree_b = pairing.a.tree, pairing.b.tree
    alike: dict[tuple[str, str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for scope in left:
        alike[tree_a.names[scope], tree_a.facts[scope]][0].append(scope)
    for scope in right:
        alike[tree_b.names[scope], tree_b.facts[scope]][1].append(scope)
    named: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    pairs: list[tuple[int, int]] = []
    for (name, _), (ours, theirs) in alike.items():
        if len(ours) == len(theirs):
            pairs += _nth(pairing, a, b, scopes=(ours, theirs))
        else:
            named[name][0].extend(ours)
            named[name][1].extend(theirs)
    for ours, theirs in named.values():
        pairs += _nth(pairing, a, b, scopes=(ours, theirs))
    return sorted(pairs, key=lambda pair: a.first[pair[0]])


def _nth(pairing: Pairing, a: Extent, b: Extent, *, scopes: tuple[list[int], list[int]]) -> list[tuple[int, int]]:
    """Pair the nth with the nth, unless recorded inputs say otherwise; unequal counts pair by inputs only (P2)."""
    left, right = scopes
    if len(left) == len(right) == 1:
        return [(left[0], right[0])]
    same = _same_inputs(pairing, a, b, scopes=scopes)
    if len(left) != len(right):
        return same
    taken_a, taken_b = {scope for scope, _ in same}, {scope for _, scope in same}
    rest = zip([s for s in left if s not in taken_a], [s for s in right if s not in taken_b], strict=True)
    return [*same, *rest]


def _same_inputs(
    pairing: Pairing, a: Extent, b: Extent, *, scopes: tuple[list[int], list[int]]
) -> list[tuple[int, int]]:
    once_a = _once(pairing.a, a, scopes=scopes[0])
    once_b = _once(pairing.b, b, scopes=scopes[1])
    return [(scope, once_b[inputs]) for inputs, scope in once_a.items() if inputs in once_b]


def _once(side: Records, where: Extent, *, scopes: list[int]) -> dict[object, int]:
    """The scopes whose entry has inputs that no other of them has."""
    found: dict[object, list[int]] = defaultdict(list)
    for scope in scopes:
        entries = where.entry.get(scope, [])
        inputs = side.anchor_inputs(entries[-1]) if entries else None
        if inputs is not None:
            found[inputs].append(scope)
    return {inputs: owners[0] for inputs, owners in found.items() if len(owners) == 1}
