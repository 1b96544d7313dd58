"""Equal events are one, different ones of one identity a conflict, references in vain a list; in any order (IN-8)."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.evidence.ids import Ref
from paritrace.inference.records import AnyEvent
from paritrace.inference.resolution import resolve
from tests.inference.evidence import claim, context, iteration, kernel, member, request

EVENTS: list[AnyEvent] = [
    request("a"),
    replace(request("a"), event_id="another, of the same request and content"),
    iteration("1"),
    iteration("1"),
    iteration("1", end_ns=5),
    replace(iteration("2"), event_id="x"),
    replace(iteration("2", end_ns=7), event_id="y"),
    member("1", "a"),
    member("3", "b"),
    claim("k", "9"),
    kernel("k2", context=context(session_id="other")),
]


def test_conflicts_and_dangling_references_are_named() -> None:
    found = resolve(EVENTS)
    assert [(one.identity, one.event_ids) for one in found.conflicts] == [
        ("event inference engine i:1", ("i:1", "i:1")),
        ("iteration engine 2", ("x", "y")),
    ]
    assert [(one.kind, one.ref) for one in found.dangling] == [
        ("iteration", Ref("engine", "3")),
        ("iteration", Ref("engine", "9")),
        ("request", Ref("client", "b")),
    ]
    assert len(found.events) == 7


@given(st.permutations(EVENTS))
def test_the_order_of_events_makes_no_difference(order: list[AnyEvent]) -> None:
    assert resolve(order) == resolve(EVENTS)


def test_equal_ids_of_two_producers_are_two_things() -> None:
    other = replace(iteration("1", end_ns=5), iteration_ref=Ref("engine-2", "1"), event_id="other")
    assert resolve([iteration("1"), other]).conflicts == ()
