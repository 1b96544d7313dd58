"""Pairing inside one scope: order, identity, anchors, segments (CP-2, CP-3, CP-4)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.correspondence.engine import correspond
from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.records import Records
from paritrace.correspondence.vocabulary import Basis, Unpaired
from tests.correspondence.sides import Item, Side, pairs_of, side


def paired(a: Records, b: Records) -> Pairing:
    return correspond(a, b).pairing


def test_equal_sequences_pair_in_order() -> None:
    found = paired(side("a", "a", "b"), side("a", "a", "b"))
    assert pairs_of(found) == [(0, 0), (1, 1), (2, 2)]
    assert set(found.basis.values()) == {Basis.EQUAL_SEQUENCE}


def test_unique_equal_inputs_outrank_order() -> None:
    found = paired(side(("f", 1), ("f", 2), ("f", 3)), side(("f", 2), ("f", 1), ("f", 9)))
    assert pairs_of(found) == [(0, 1), (1, 0), (2, 2)]
    assert found.reordered == {0, 1}
    assert found.basis[0] is Basis.INPUT_IDENTITY
    assert found.basis[2] is Basis.EQUAL_SEQUENCE


def test_inputs_that_occur_twice_identify_nothing() -> None:
    found = paired(side(("f", 1), ("f", 1), ("f", 2)), side(("f", 2), ("f", 1), ("f", 1)))
    assert pairs_of(found) == [(0, 1), (1, 2), (2, 0)]
    assert found.reordered == {2}  # the other two pair in the order that is left


def test_a_name_outranks_order_when_inputs_have_changed() -> None:
    a = Side([Item("linear", 1, names=("q",)), Item("linear", 2, names=("k",))]).records()
    b = Side([Item("linear", 8, names=("k",)), Item("linear", 9, names=("q",))]).records()
    found = paired(a, b)
    assert pairs_of(found) == [(0, 1), (1, 0)]
    assert set(found.basis.values()) == {Basis.PARAMETER_ANCHOR}


def test_an_inserted_call_stays_alone_between_its_neighbours() -> None:
    found = paired(side("a", "x", "x", "b"), side("a", "x", "x", "n", "b"))
    assert pairs_of(found) == [(0, 0), (3, 4)]
    assert found.basis == {0: Basis.UNIQUE_KEY, 3: Basis.UNIQUE_KEY}
    assert {found.reason_a(1), found.reason_b(3)} == {Unpaired.UNEQUAL_BETWEEN_ANCHORS}


def test_segments_away_from_the_insertion_pair_in_order() -> None:
    found = paired(side("x", "x", "a", "y", "b"), side("x", "x", "a", "y", "y", "b"))
    assert (0, 0) in pairs_of(found)
    assert found.basis[0] is Basis.BETWEEN_ANCHORS


def test_without_any_anchor_nothing_is_claimed() -> None:
    found = paired(side("x", "x"), side("x", "x", "x"))
    assert pairs_of(found) == []
    assert found.reason_a(0) is Unpaired.NO_ANCHOR


def test_equal_unique_inputs_anchor_where_keys_repeat() -> None:
    found = paired(side(("f", 1), ("f", 2)), side(("f", 1), ("f", 7), ("f", 2)))
    assert pairs_of(found) == [(0, 0), (1, 2)]
    assert set(found.basis.values()) == {Basis.INPUT_ANCHOR}


def test_a_parameter_anchors_whatever_the_activations_are() -> None:
    a = Side([Item("mm", 1, names=("w",)), Item("mm", 2)]).records()
    b = Side([Item("mm", 3), Item("mm", 4, names=("w",)), Item("mm", 5)]).records()
    found = paired(a, b)
    assert (0, 1) in pairs_of(found)
    assert found.basis[0] is Basis.PARAMETER_ANCHOR


def test_n17_one_moved_call_among_a_thousand() -> None:
    a = side(*((f"k{n}", n) for n in range(1000)))
    b = side(*((f"k{n}", n) for n in [*range(1, 1000), 0]))
    found = paired(a, b)
    assert len(pairs_of(found)) == 1000
    assert found.reordered == {0}


def test_n17_moved_and_changed_is_undetermined() -> None:
    a = side(*((f"k{n}", n) for n in range(1000)))
    b = side(*((f"k{n}", n or "other") for n in [*range(1, 1000), 0]))
    found = paired(a, b)
    assert len(pairs_of(found)) == 999
    assert found.reason_a(0) is Unpaired.ANCHOR_CROSSED


keys = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3)), max_size=9)


@settings(deadline=None)
@given(keys)
def test_identical_sides_pair_completely_and_in_order(items: list[tuple[int, int | None]]) -> None:
    found = paired(side(*items), side(*items))
    assert pairs_of(found) == [(i, i) for i in range(len(items))]
    assert not found.reordered


@settings(deadline=None)
@given(keys, keys)
def test_swapping_the_sides_mirrors_the_pairs(a: list[tuple[int, int | None]], b: list[tuple[int, int | None]]) -> None:
    there, back = paired(side(*a), side(*b)), paired(side(*b), side(*a))
    assert pairs_of(there) == sorted((j, i) for i, j in pairs_of(back))
    assert [there.reason_b(j) for j in range(len(b))] == [back.reason_a(j) for j in range(len(b))]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=4), st.data())
def test_an_added_call_changes_pairs_of_its_own_segment_only(sizes: list[int], data: st.DataObject) -> None:
    """Segments between unique calls, each of equal repeated calls; one call of a segment's own kind is added."""
    a: list[object] = []
    homes: list[int] = []
    for segment, size in enumerate(sizes):
        a += [f"border{segment}", *([f"inner{segment}"] * size)]
        homes += [segment] * (size + 1)
    changed = data.draw(st.integers(0, len(sizes) - 1))
    place = max(i for i, home in enumerate(homes) if home == changed) + 1
    b = [*a[:place], f"inner{changed}", *a[place:]]
    before, after = paired(side(*a), side(*a)), paired(side(*a), side(*b))
    kept = {(i, j if j < place else j + 1) for i, j in pairs_of(before) if homes[i] != changed}
    assert kept <= set(pairs_of(after))
    lost = {i for i, _ in pairs_of(before)} - {i for i, _ in pairs_of(after)}
    assert all(homes[i] == changed for i in lost)


@pytest.mark.parametrize("layer", [0, 1])
def test_layers_never_share_a_sequence(layer: int) -> None:
    a = Side([Item("f", layer=0), Item("g", layer=1)]).records()
    b = Side([Item("f", layer=layer), Item("g", layer=1)]).records()
    assert ((0, 0) in pairs_of(paired(a, b))) is (layer == 0)
