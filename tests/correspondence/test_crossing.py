"""Crossing anchors: the busier goes, both if equal; N-17 (CP-3)."""

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.correspondence.crossing import surviving


def by_definition(positions: Sequence[int]) -> list[bool]:
    crossed: list[list[int]] = [[] for _ in positions]
    for i, j in combinations(range(len(positions)), 2):
        if positions[i] > positions[j]:
            crossed[i].append(j)
            crossed[j].append(i)
    return [all(len(crossed[j]) > len(crossed[i]) for j in crossed[i]) for i in range(len(positions))]


@settings(deadline=None)
@given(st.permutations(range(9)))
def test_is_the_definition(positions: list[int]) -> None:
    assert surviving(positions) == by_definition(positions)


@settings(deadline=None)
@given(st.permutations(range(9)))
def test_both_sides_drop_the_same_anchors(positions: list[int]) -> None:
    mirrored = sorted(range(len(positions)), key=positions.__getitem__)
    kept = {i for i, lives in enumerate(surviving(positions)) if lives}
    assert kept == {mirrored[j] for j, lives in enumerate(surviving(mirrored)) if lives}


@settings(deadline=None)
@given(st.permutations(range(9)))
def test_survivors_do_not_cross(positions: list[int]) -> None:
    kept = [position for position, lives in zip(positions, surviving(positions), strict=True) if lives]
    assert kept == sorted(kept)


def test_one_moved_anchor_costs_one_anchor() -> None:
    alive = surviving([*range(1, 1000), 0])
    assert alive == [*[True] * 999, False]


def test_two_that_swap_are_both_dropped() -> None:
    assert surviving([1, 0]) == [False, False]


def test_gaps_between_positions_do_not_matter() -> None:
    assert surviving([10, 70, 30]) == surviving([0, 2, 1])
