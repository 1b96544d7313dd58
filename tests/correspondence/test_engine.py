"""The whole engine: scopes first, links, flow, and what must hold for every pair of sides (CP-1 to CP-4)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from paritrace.correspondence.engine import correspond
from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.records import Made
from paritrace.correspondence.stretches import stretches
from paritrace.correspondence.vocabulary import Basis, Unpaired
from tests.correspondence.sides import TREE, Item, Side, Tree, grouped_sides, pairs_of, sides


def paired(a: Side, b: Side) -> Pairing:
    return correspond(a.records(), b.records()).pairing


@settings(max_examples=100, deadline=None)
@given(sides())
def test_identical_sides_pair_completely(one: Side) -> None:
    found = paired(one, one)
    entire = [i for i, item in enumerate(one.items) if not item.entry]
    assert [i for i, _ in pairs_of(found)] == entire
    assert all(i == j for i, j in pairs_of(found))


@settings(max_examples=100, deadline=None)
@given(sides(), sides())
def test_swapping_the_sides_mirrors_everything(one: Side, other: Side) -> None:
    is_mirrored(one, other)


@settings(max_examples=200, deadline=None)
@given(grouped_sides(), grouped_sides())
def test_swapping_the_sides_mirrors_groups_too(one: Side, other: Side) -> None:
    is_mirrored(one, other)
    found = paired(one, other)
    for i, j in pairs_of(found):
        ours, theirs = one.items[i], other.items[j]
        assert ours.key == theirs.key
        assert ours.stream == theirs.stream or (ours.wider is not None and ours.wider == theirs.wider)


@settings(max_examples=50, deadline=None)
@given(grouped_sides())
def test_identical_groups_pair_completely(one: Side) -> None:
    assert pairs_of(paired(one, one)) == [(i, i) for i in range(len(one.items))]


def is_mirrored(one: Side, other: Side) -> None:
    there, back = paired(one, other), paired(other, one)
    assert there.partner_a == back.partner_b
    assert there.partner_b == back.partner_a
    assert {(i, there.partner_a[i]): basis for i, basis in there.basis.items()} == {
        (back.partner_a[j], j): basis for j, basis in back.basis.items()
    }
    assert {there.partner_a[i] for i in there.reordered} == back.reordered
    reasons = [there.reason_a(i) for i, j in enumerate(there.partner_a) if j < 0]
    assert reasons == [back.reason_b(i) for i, j in enumerate(back.partner_b) if j < 0]


@settings(max_examples=100, deadline=None)
@given(sides(), sides())
def test_a_pair_never_crosses_streams_or_layers_and_nothing_pairs_twice(one: Side, other: Side) -> None:
    found = paired(one, other)
    for i, j in pairs_of(found):
        assert found.partner_b[j] == i
        assert one.items[i].stream == other.items[j].stream
        assert one.items[i].layer == other.items[j].layer
        assert one.items[i].key == other.items[j].key


@settings(max_examples=100, deadline=None)
@given(sides(), sides())
def test_stretches_hold_exactly_the_unpaired_records_of_paired_scopes(one: Side, other: Side) -> None:
    found = correspond(one.records(), other.records())
    apart = stretches(found)
    for i, place in enumerate(apart.of_a):
        paired_here = found.pairing.partner_a[i] >= 0
        assert not (paired_here and place >= 0)
        if place >= 0:
            assert i in apart.found[place].a
    streams = {item.stream for item in other.items}
    missing = [i for i, item in enumerate(one.items) if item.stream not in streams]
    alone = [i for i, j in enumerate(found.pairing.partner_a) if j < 0 and i not in missing]
    assert sorted(i for stretch in apart.found for i in stretch.a) == alone


def test_an_unequal_module_never_unpairs_its_neighbour() -> None:
    inside = [Item("f", scope=3), Item("f", scope=4)]
    found = paired(Side(inside, TREE), Side([Item("f", scope=3), Item("f", scope=3), Item("f", scope=4)], TREE))
    assert pairs_of(found) == [(1, 2)]


def test_a_scope_pairs_by_name_when_its_class_has_changed() -> None:
    eager = Tree((0, 0), ("", "attention"), ("", "Eager"))
    fused = Tree((0, 0), ("", "attention"), ("", "Fused"))
    found = paired(Side([Item("e", scope=1, entry=True)], eager), Side([Item("e", scope=1, entry=True)], fused))
    assert found.basis == {0: Basis.SCOPE}


def test_of_two_scopes_of_one_name_the_class_decides() -> None:
    a = Tree((0, 0, 0), ("", "", ""), ("", "Model", "Loss"))
    b = Tree((0, 0, 0, 0), ("", "", "", ""), ("", "Metric", "Model", "Loss"))
    found = paired(
        Side([Item("m", scope=1), Item("l", scope=2)], a),
        Side([Item("x", scope=1), Item("m", scope=2), Item("l", scope=3)], b),
    )
    assert pairs_of(found) == [(0, 1), (1, 2)]
    assert found.reason_b(0) is Unpaired.SCOPE_UNPAIRED


def test_modules_called_unequally_often_pair_by_inputs_only() -> None:
    twice = Tree((0, 0, 0), ("", "block", "block"), ("", "B", "B"))
    thrice = Tree((0, 0, 0, 0), ("", "block", "block", "block"), ("", "B", "B", "B"))
    a = [Item("B", n, scope=n, entry=True) for n in (1, 2)]
    b = [Item("B", inputs, scope=n, entry=True) for n, inputs in ((1, 7), (2, 1), (3, 8))]
    found = paired(Side(a, twice), Side(b, thrice))
    assert pairs_of(found) == [(0, 1)]


def test_backward_follows_forward() -> None:
    forward = [Item("f", 1), Item("f", 2)]
    back = [Item("b", stream="backward", link=1), Item("b", stream="backward", link=0)]
    moved = [Item("f", 2), Item("f", 1), Item("b", stream="backward", link=1), Item("b", stream="backward", link=0)]
    found = paired(Side([*forward, *back]), Side(moved))
    assert pairs_of(found) == [(0, 1), (1, 0), (2, 3), (3, 2)]
    assert found.basis[2] is Basis.BACKWARD_LINK


def test_backward_of_an_unpaired_forward_says_so() -> None:
    a = Side([Item("f"), Item("b", stream="backward", link=0)])
    b = Side([Item("f"), Item("f"), Item("b", stream="backward", link=0), Item("b", stream="backward", link=1)])
    found = paired(a, b)
    assert pairs_of(found) == []
    assert found.reason_a(1) is Unpaired.FORWARD_UNPAIRED


def test_accumulation_pairs_by_parameter_name() -> None:
    a = [Item("acc", stream="backward", label=name) for name in ("w", "v")]
    b = [Item("acc", stream="backward", label=name) for name in ("v", "w")]
    found = paired(Side(a), Side(b))
    assert pairs_of(found) == [(0, 1), (1, 0)]
    assert set(found.basis.values()) == {Basis.PARAMETER_NAME}


def test_flow_pairs_a_chain_behind_an_anchor() -> None:
    chain = [Item("a"), Item("x", flow=(Made(0, 0),)), Item("x", flow=(Made(1, 0),))]
    longer = [
        Item("a"),
        Item("x", flow=("batch",)),
        chain[1],
        replace(chain[2], flow=(Made(2, 0),)),
    ]
    found = paired(Side(chain), Side(longer))
    assert pairs_of(found) == [(0, 0), (1, 2), (2, 3)]
    assert found.basis[2] is Basis.DATAFLOW


def test_flow_with_unequal_counts_pairs_nothing() -> None:
    a = [Item("a"), Item("x", flow=(Made(0, 0),))]
    b = [Item("a"), Item("x", flow=(Made(0, 0),)), Item("x", flow=(Made(0, 0),))]
    assert pairs_of(paired(Side(a), Side(b))) == [(0, 0)]


def test_flow_of_unknown_source_pairs_nothing() -> None:
    a = [Item("x", flow=(None,))]
    b = [Item("x", flow=(None,)), Item("x", flow=("batch",))]
    assert pairs_of(paired(Side(a), Side(b))) == []


def test_a_stream_of_one_side_only_says_so() -> None:
    found = paired(Side([Item("f", stream="step 1")]), Side([Item("f", stream="step 2")]))
    assert found.reason_a(0) is Unpaired.STREAM_MISSING
    assert found.reason_b(0) is Unpaired.STREAM_MISSING


def test_a_stretch_has_its_paired_neighbours() -> None:
    found = correspond(Side([Item("a"), Item("b")]).records(), Side([Item("a"), Item("n"), Item("b")]).records())
    (stretch,) = stretches(found).found
    assert (stretch.a, stretch.b) == ([], [1])
    assert (stretch.after, stretch.before) == ((0, 0), (1, 2))


def collective(**more: Any) -> Item:
    return replace(Item("all_reduce", stream="world", wider="groups"), **more)


def bucket(holds: str) -> Item:
    return collective(label=f"bucket {holds}", names=tuple(holds))


def test_buckets_pair_by_what_they_hold_in_any_order() -> None:
    found = paired(Side([bucket("ab"), bucket("c")]), Side([bucket("c"), bucket("ab")]))
    assert pairs_of(found) == [(0, 1), (1, 0)]
    assert set(found.basis.values()) == {Basis.PARAMETER_NAME}


def test_a_bucket_that_lost_a_parameter_pairs_by_the_rest() -> None:
    found = paired(Side([bucket("ab"), bucket("c")]), Side([bucket("b"), bucket("c")]))
    assert pairs_of(found) == [(0, 0), (1, 1)]
    assert found.basis[0] is Basis.PARAMETER_ANCHOR


def test_buckets_cut_otherwise_pair_nothing() -> None:
    assert pairs_of(paired(Side([bucket("ab"), bucket("c")]), Side([bucket("a"), bucket("bc")]))) == []


@pytest.mark.parametrize(
    ("item", "basis"),
    [
        (bucket("ab"), Basis.PARAMETER_NAME),
        (collective(inputs=7), Basis.INPUT_ANCHOR),
        (collective(flow=("gradient:a",)), Basis.DATAFLOW),
    ],
)
def test_a_counterpart_in_another_group_needs_evidence(item: Item, basis: Basis) -> None:
    found = paired(Side([item]), Side([replace(item, stream="dp")]))
    assert found.basis == {0: basis}


def test_order_is_no_evidence_across_groups() -> None:
    found = paired(Side([collective()]), Side([collective(stream="dp")]))
    assert pairs_of(found) == []
    assert found.reason_a(0) is Unpaired.STREAM_MISSING


def test_a_counterpart_in_the_own_group_comes_first() -> None:
    twice = Side([collective(inputs=7, stream="dp"), collective(inputs=7)])
    assert pairs_of(paired(Side([collective(inputs=7)]), twice)) == [(0, 1)]
