"""Which anchors survive where anchors cross: one moved record costs one anchor, not a thousand (CP-3, N-17)."""

from collections.abc import Sequence
from itertools import pairwise


def surviving(positions: Sequence[int]) -> list[bool]:
    """Say of each anchor whether it survives; anchors stand in the order of one side.

    `positions[k]` is the k-th anchor's place on the other side (all different). Two anchors cross when the sides
    order them differently. An anchor is dropped when it crosses one that crosses as few others or fewer: of two
    crossing anchors the busier goes, both if equal. O(n log n); the same set whichever side is named first.
    """
    if all(left < right for left, right in pairwise(positions)):
        return [True] * len(positions)
    ranks = _ranks(positions)
    crossings = _crossings(ranks)
    rivals = _least_crossed_rival(ranks, crossings)
    return [rival is None or rival > own for own, rival in zip(crossings, rivals, strict=True)]


def _ranks(positions: Sequence[int]) -> list[int]:
    order = {position: rank for rank, position in enumerate(sorted(positions))}
    return [order[position] for position in positions]


def _crossings(ranks: Sequence[int]) -> list[int]:
    """Count for each anchor how many others it crosses (a Fenwick tree of counts)."""
    size = len(ranks)
    tree = [0] * (size + 1)
    found: list[int] = []
    for seen, rank in enumerate(ranks):
        below = 0
        node = rank + 1
        while node:
            below += tree[node]
            node &= node - 1
        # `seen - below` earlier anchors stand higher; of the `rank` lower ones, `rank - below` come later.
        found.append((seen - below) + (rank - below))
        node = rank + 1
        while node <= size:
            tree[node] += 1
            node += node & -node
    return found


def _least_crossed_rival(ranks: Sequence[int], crossings: Sequence[int]) -> list[int | None]:
    """The smallest crossing count among those that each anchor crosses, None where it crosses nobody."""
    size = len(ranks)
    earlier = _prefix_minima([size - 1 - rank for rank in ranks], crossings)
    later = _prefix_minima(list(reversed(ranks)), list(reversed(crossings)))
    later.reverse()
    return [
        min(pair) if (pair := [c for c in both if c is not None]) else None for both in zip(earlier, later, strict=True)
    ]


def _prefix_minima(ranks: Sequence[int], values: Sequence[int]) -> list[int | None]:
    """For each item the least value among the items before it whose rank is lower (a Fenwick tree of minima)."""
    size = len(ranks)
    nothing = size + 1
    tree = [nothing] * (size + 1)
    found: list[int | None] = []
    for rank, value in zip(ranks, values, strict=True):
        least = nothing
        node = rank
        while node:
            least = min(least, tree[node])
            node &= node - 1
        found.append(None if least == nothing else least)
        node = rank + 1
        while node <= size:
            tree[node] = min(tree[node], value)
            node += node & -node
    return found
