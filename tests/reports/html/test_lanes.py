"""Timelines of lanes: what is in them, on one clock, inside the picture (SU-10, IN-3)."""

from hypothesis import given
from hypothesis import strategies as st

from paritrace.evidence.ids import Ref
from paritrace.inference.context import ClockKind
from paritrace.inference.records import Iteration, Request
from paritrace.inference.served_result import ServedIn
from paritrace.reports.html.lanes import LEFT, NARROWEST, WIDTH, Stretch, lanes
from paritrace.reports.html.request_lanes import request_lanes
from tests.inference.evidence import context, iteration, request

SPANS = st.lists(st.tuples(st.integers(-(2**61), 2**61), st.integers(0, 2**61)), min_size=1, max_size=20)


@given(SPANS)
def test_every_bar_lies_inside_and_in_order_of_time(spans: list[tuple[int, int]]) -> None:
    held = [Stretch(start, start + length, "x") for start, length in spans]
    drawn = lanes([("none", "stage", []), ("some", "stage", held)], said=())
    assert drawn is not None
    (lane,) = drawn.lanes
    assert len(lane.bars) == len(spans)
    for bar in lane.bars:
        assert bar.x >= LEFT
        assert bar.width >= NARROWEST
        assert bar.x + bar.width <= WIDTH
    places = [bar.x for _, bar in sorted(zip(spans, lane.bars, strict=True), key=lambda pair: pair[0][0])]
    assert places == sorted(places)
    assert 1 <= len(drawn.ticks) <= 8
    assert all(LEFT <= tick.at <= WIDTH for tick in drawn.ticks)


def test_nothing_to_draw_is_no_picture() -> None:
    assert lanes([], said=()) is None
    assert lanes([("empty", "stage", [])], said=()) is None


def served(name: str, role: str = "decode") -> ServedIn:
    ref = Ref("engine", name)
    return ServedIn(iteration=ref, role=role, tokens=1, elapsed_ns=1, members=2, work=(), other={})


def drawn_of(requests: list[Request], iterations: list[Iteration]) -> tuple[list[str], str]:
    told = [served(one.iteration_ref.id) for one in iterations]
    known = {one.iteration_ref: one for one in iterations}
    chart = request_lanes(requests, [], served=told, iterations=known, address=lambda ref: f"/{ref.id}")
    assert chart is not None
    return [bar.text for lane in chart.lanes for bar in lane.bars], " ".join(chart.said)


def test_in3_what_another_clock_measured_is_counted_and_not_drawn() -> None:
    other = context(clock_domain="other")
    texts, said = drawn_of(
        [request("r", start_ns=0, end_ns=10**6)], [iteration("1"), iteration("2", context=other), iteration("3")]
    )
    assert texts == ["test, 1.000 ms", "iteration 1, decode, 0.001 ms, 2 requests in it", *texts[2:]]
    assert len(texts) == 3
    assert "Not drawn: 1 measured by another clock." in said


def test_in3_a_wall_clock_gives_places_and_no_durations() -> None:
    wall = context(clock_kind=ClockKind.WALL)
    one = Request(context=wall, event_id="r", request_ref=Ref("client", "r"), start_ns=0, end_ns=10**6)
    texts, said = drawn_of([one], [])
    assert texts == ["test"]
    assert "not how long they took" in said


def test_events_without_times_have_no_picture_and_are_counted_beside_others() -> None:
    assert request_lanes([request("r")], [], served=[], iterations={}, address=str) is None
    _, said = drawn_of([request("r"), request("s", start_ns=0, end_ns=9)], [])
    assert "Not drawn: 1 without times" in said
