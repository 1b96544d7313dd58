"""Streams that run alike are paired at once; what comes out is what pairing record by record gives (CP-17)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.correspondence.congruent import congruent
from paritrace.correspondence.engine import Correspondence, correspond, correspond_singly
from paritrace.correspondence.stretches import stretches
from tests.correspondence.sides import TREE, Item, Side, Tree, grouped_sides, sides

TWICE = Tree((0, 0, 0), ("", "block", "block"), ("", "B", "B"))


@st.composite
def steps(draw: st.DrawFn) -> Side:
    """Several steps of one side, forward and backward, some with entries of modules that are called twice."""
    made: list[Item] = []
    for step in range(draw(st.integers(1, 3))):
        start = len(made)
        for scope in draw(st.lists(st.integers(0, 2), max_size=4)):
            inputs, key = draw(st.none() | st.integers(0, 3)), draw(st.integers(0, 1))
            entry = scope > 0 and draw(st.booleans())
            names = draw(st.sampled_from([(), ("w",)]))
            made.append(Item(key, inputs, scope=scope, stream=("f", step), entry=entry, names=names))
        forward = list(range(start, len(made)))
        for _ in range(draw(st.integers(0, 3)) if forward else 0):
            link = draw(st.sampled_from([-1, *range(start, len(made))]))
            label = draw(st.sampled_from(["", "", "w", "v"]))
            made.append(Item("b", draw(st.integers(0, 1)), stream=("b", step), link=link, label=label))
    return Side(made, TWICE)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Side, Side]:
    """Two sides of which the second is the first with a few records changed, or another one."""
    one = draw(st.one_of(steps(), sides(), grouped_sides()))
    items = list(one.items)
    for _ in range(draw(st.integers(0, 2))):
        if not items:
            break
        place = draw(st.integers(0, len(items) - 1))
        change = draw(st.sampled_from(["inputs", "key", "names", "scope", "label", "link", "gone"]))
        items = changed(items, place, change, draw(st.integers(0, 3)))
    return one, Side(items, one.tree)


def changed(items: list[Item], place: int, change: str, value: int) -> list[Item]:
    item = items[place]
    match change:
        case "inputs":
            new = replace(item, inputs=value)
        case "key":
            new = replace(item, key=value)
        case "names":
            new = replace(item, names=("w", "v")[: value % 3])
        case "scope":
            new = replace(item, scope=value % 3)
        case "label":
            new = replace(item, label=("", "w", "v", "x")[value])
        case "link":
            new = replace(item, link=min(value, place) - 1)
        case _:  # the last one ends earlier: no record links to it
            return items[:-1]
    return [*items[:place], new, *items[place + 1 :]]


def shown(found: Correspondence) -> tuple[object, ...]:
    """All that a correspondence says, but for how it numbers the paired scopes."""
    pairing, apart = found.pairing, stretches(found)
    homes = [[pairing.scope_pairs[home] if home >= 0 else None for home in side] for side in found.homes]
    return (
        list(pairing.partner_a),
        list(pairing.partner_b),
        dict(pairing.basis),
        pairing.reordered,
        [pairing.reason_a(i) for i, j in enumerate(pairing.partner_a) if j < 0],
        [pairing.reason_b(j) for j, i in enumerate(pairing.partner_b) if i < 0],
        homes,
        [(one.a, one.b, one.after, one.before) for one in apart.found],
        (list(apart.of_a), list(apart.of_b)),
    )


@settings(max_examples=40, deadline=None)
@given(pairs())
def test_both_ways_say_the_same(both: tuple[Side, Side]) -> None:
    a, b = (side.records() for side in both)
    assert shown(correspond(a, b)) == shown(correspond_singly(a, b))


def test_a_side_against_itself_needs_no_second_way() -> None:
    one = Side([Item("f", 1), Item("f", 2), Item("b", stream="back", link=0), Item("c", stream="back")], TREE)
    found = congruent(one.records(), one.records())
    assert found.a.tolist() == found.b.tolist()
    assert {i: bool(late) for i, late in zip(found.a.tolist(), found.late, strict=True)} == {
        0: False,
        1: False,
        2: False,
        3: True,
    }


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([Item("f", 1), Item("f", 2)], [Item("f", 2), Item("f", 1)]),  # exchanged
        ([Item("f", 1), Item("f", 2)], [Item("f", 2), Item("f", 3)]),  # moved up
        ([Item("f", names=("w",)), Item("f")], [Item("f"), Item("f", names=("w",))]),
        ([Item("f"), Item("b", stream="back", link=0)], [Item("g"), Item("b", stream="back", link=0)]),
        ([Item("f", scope=3), Item("f", scope=4)], [Item("f", scope=3), Item("f", scope=3)]),
    ],
)
def test_a_stream_that_could_pair_otherwise_is_left_to_the_rules(ours: list[Item], theirs: list[Item]) -> None:
    a, b = Side(ours, TREE).records(), Side(theirs, TREE).records()
    assert not len(congruent(a, b).a)
    assert shown(correspond(a, b)) == shown(correspond_singly(a, b))


def test_other_inputs_alone_leave_a_stream_congruent() -> None:
    a, b = ([Item("f", 1), Item("f", first), Item("f", 3)] for first in (2, 7))
    assert congruent(Side(a).records(), Side(b).records()).a.tolist() == [0, 1, 2]
