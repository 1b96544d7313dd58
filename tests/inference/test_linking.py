"""By ids and threads, never by time alone; whatever the order of the events (IN-7, IN-24)."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.evidence.ids import Ref
from paritrace.inference.linking import RULE, LinkTables, link
from paritrace.inference.ranges import Range, ThreadRanges
from paritrace.inference.records import Activity, AnyEvent, Iteration, Link
from paritrace.inference.vocabulary import Basis, LinkReason
from tests.inference.evidence import DEVICE, ENGINE, claim, context, iteration, kernel, launch

TRACE = "trace:x"
RANGE = iteration("step", 100, 200, thread_id="3", trace_attachment_id=TRACE)
NO_UUID = context(producer_id="cupti", device_uuid=None)


def links(*events: AnyEvent) -> dict[str, Link]:
    return {one.activity_ref.id: one for one in link(events)}


def why(found: Link) -> str:
    return found.basis.value if found.basis is not None else str(found.reason and found.reason.value)


def in_trace(name: str, number: str = "9", **more: Any) -> Activity:
    return kernel(name, trace_attachment_id=TRACE, cuda_correlation_id=number, **more)


def launched(name: str, start_ns: int, end_ns: int, number: str = "9", **more: Any) -> Activity:
    return launch(name, start_ns, end_ns, trace_attachment_id=TRACE, cuda_correlation_id=number, **more)


CASES: dict[str, tuple[Sequence[AnyEvent], str]] = {
    "its collector names a reported iteration": ([iteration("1"), claim("k", "1")], "exact_id"),
    "its collector names one that nobody reported": ([claim("k", "1")], "dangling_iteration"),
    "an activity with its key names one": (
        [iteration("1"), claim("c", "1", runtime_correlation_id="5"), kernel("k", runtime_correlation_id="5")],
        "exact_id",
    ),
    "no scope": ([kernel("k", correlation_scope=None, runtime_correlation_id="5")], "no_scope"),
    "no host": ([kernel("k", context=context(host=None), runtime_correlation_id="5")], "no_scope"),
    "no process": ([kernel("k", context=context(pid=None), runtime_correlation_id="5")], "no_scope"),
    "no id": ([kernel("k")], "no_key"),
    "another process has that id": (
        [
            iteration("1"),
            claim("c", "1", runtime_correlation_id="5", context=context(pid=8)),
            kernel("k", runtime_correlation_id="5", context=ENGINE),
        ],
        "no_candidate",
    ),
    "runtime and cuda ids are two kinds": (
        [iteration("1"), claim("c", "1", runtime_correlation_id="5"), kernel("k", cuda_correlation_id="5")],
        "no_candidate",
    ),
    "two iterations have that id": (
        [
            iteration("1"),
            iteration("2"),
            claim("a", "1", runtime_correlation_id="5"),
            claim("b", "2", runtime_correlation_id="5"),
            kernel("k", runtime_correlation_id="5"),
        ],
        "ambiguous",
    ),
    "its two ids lead to two iterations": (
        [
            iteration("1"),
            iteration("2"),
            claim("a", "1", runtime_correlation_id="5"),
            claim("b", "2", cuda_correlation_id="6"),
            kernel("k", runtime_correlation_id="5", cuda_correlation_id="6"),
        ],
        "ids_disagree",
    ),
    "only another device has that id": (
        [
            iteration("1"),
            claim("c", "1", runtime_correlation_id="5"),
            kernel("k", runtime_correlation_id="5", context=context(device_uuid="GPU-2")),
        ],
        "device_differs",
    ),
    "a missing device matches none that is there": (
        [
            iteration("1"),
            claim("c", "1", runtime_correlation_id="5"),
            kernel("k", runtime_correlation_id="5", context=NO_UUID),
        ],
        "device_differs",
    ),
    "a missing device matches a missing one": (
        [
            iteration("1"),
            claim("c", "1", runtime_correlation_id="5", context=NO_UUID),
            kernel("k", runtime_correlation_id="5", context=NO_UUID),
        ],
        "exact_id",
    ),
    "its launch lies inside a range": ([RANGE, launched("l", 110, 120), in_trace("k")], "same_thread_range"),
    "its launch begins with the range": ([RANGE, launched("l", 100, 120), in_trace("k")], "same_thread_range"),
    "its launch begins where the range ends": ([RANGE, launched("l", 200, 200), in_trace("k")], "outside_every_range"),
    "its launch leaves the range": ([RANGE, launched("l", 190, 201), in_trace("k")], "outside_every_range"),
    "its launch is of another thread": (
        [RANGE, launched("l", 110, 120, thread_id="4"), in_trace("k")],
        "outside_every_range",
    ),
    "its launch is of another process": (
        [RANGE, launched("l", 110, 120, context=context(pid=8)), in_trace("k", context=context(pid=None))],
        "outside_every_range",
    ),
    "its launch is told by another clock": (
        [RANGE, launched("l", 110, 120, context=context(clock_domain="other")), in_trace("k")],
        "outside_every_range",
    ),
    "the range is of another trace": (
        [
            iteration("step", 100, 200, thread_id="3", trace_attachment_id="trace:y"),
            launched("l", 110, 120),
            in_trace("k"),
        ],
        "outside_every_range",
    ),
    "no record of its launch": ([RANGE, in_trace("k")], "no_launch_record"),
    "two launches": ([RANGE, launched("l", 110, 120), launched("m", 110, 120), in_trace("k")], "ambiguous"),
    "the range is a profiler's": (
        [
            iteration("step", 100, 200, thread_id="3", trace_attachment_id=TRACE, anchor="ProfilerStep#1"),
            launched("l", 110, 120),
            in_trace("k"),
        ],
        "step_range_anchor",
    ),
    "the time alone fits": ([RANGE, kernel("k", 110, 120, runtime_correlation_id="5")], "no_candidate"),
}


@pytest.mark.parametrize("what", CASES)
def test_bases_and_reasons(what: str) -> None:
    events, expected = CASES[what]
    assert why(links(*events)["k"]) == expected
    assert why(links(*reversed(events))["k"]) == expected


@pytest.mark.parametrize("number", ["0", "-1", str(2**32 - 1), "null", ""])
def test_sentinels_are_no_ids(number: str) -> None:
    """B-11: five kernels and one launch with correlation 0 do not join."""
    found = links(RANGE, launched("l", 110, 120, number), *(in_trace(f"k{n}", number) for n in range(5)))
    assert {why(found[f"k{n}"]) for n in range(5)} == {"sentinel"}


def test_one_launch_of_many_kernels_links_each() -> None:
    """B-09: a graph's launch has three kernels."""
    found = links(RANGE, launched("l", 110, 120, "7"), *(in_trace(name, "7") for name in "abc"))
    assert [why(found[name]) for name in "abc"] == ["same_thread_range"] * 3


def test_a_host_activity_is_its_own_launch() -> None:
    assert why(links(RANGE, launched("l", 110, 120))["l"]) == "same_thread_range"


def test_the_innermost_range_counts_and_crossing_ones_are_ambiguous() -> None:
    inner = iteration("inner", 105, 150, thread_id="3", trace_attachment_id=TRACE)
    crossing = iteration("crossing", 108, 170, thread_id="3", trace_attachment_id=TRACE)
    twin = iteration("twin", 105, 150, thread_id="3", trace_attachment_id=TRACE)
    work = [launched("l", 110, 120), in_trace("k")]
    assert links(RANGE, inner, *work)["k"].iteration_ref == Ref("engine", "inner")
    found = links(RANGE, inner, crossing, *work)["k"]
    assert (found.reason, found.num_candidates) == (LinkReason.AMBIGUOUS, 2)
    assert links(RANGE, inner, twin, *work)["k"].candidates == (Ref("engine", "inner"), Ref("engine", "twin"))


def test_a_link_names_what_it_rests_on() -> None:
    found = links(RANGE, launched("l", 110, 120), in_trace("k"))["k"]
    assert (found.rule, found.evidence) == (RULE, ("k:k", "k:l", "i:step"))


def test_a_missing_device_says_so() -> None:
    found = links(*CASES["a missing device matches a missing one"][0])["k"]
    assert "without a device uuid" in found.metadata["detail"]
    assert found.basis is Basis.EXACT_ID


def test_activities_are_what_they_were() -> None:
    work = in_trace("k")
    links(RANGE, launched("l", 110, 120), work)
    assert work == in_trace("k")
    assert DEVICE.facts.device_uuid == "GPU-1"


ALL = [event for events, _ in CASES.values() for event in events]
EVERYTHING = list({(event.context.id, event.event_id): event for event in ALL}.values())


@given(st.permutations(EVERYTHING))
def test_the_order_of_events_makes_no_difference(order: list[AnyEvent]) -> None:
    expected = sorted(link(EVERYTHING), key=lambda one: (one.event_id, one.context.id))
    assert sorted(link(order), key=lambda one: (one.event_id, one.context.id)) == expected


def of_process(name: str, pid: int | None, number: str) -> Activity:
    return in_trace(name, number, context=context(producer_id="cupti", device_uuid="GPU-1", pid=pid))


SHARED: list[Activity] = [
    *(launched(f"l{place}", 110, 120, str(place // 3)) for place in range(9)),
    *(launched(f"of 8, {place}", 110, 120, "0", context=context(pid=8)) for place in range(2)),
    *(claim(f"c{place}", str(place % 2), runtime_correlation_id=str(place // 4), context=ENGINE) for place in range(8)),
    *(of_process(f"w{pid}{number}", pid, number) for pid in (7, 8, None) for number in ("0", "1", "2", "3")),
    *(kernel(f"e{number}", runtime_correlation_id=number, context=ENGINE) for number in "012"),
    *(kernel(f"d{number}", runtime_correlation_id=number, context=context(device_uuid="GPU-1")) for number in "012"),
]


TOGETHER: list[AnyEvent] = [RANGE, iteration("0"), iteration("1"), *SHARED]
ALONE = {one.event_id: LinkTables(TOGETHER).found(one) for one in SHARED}  # by tables of its own


@given(st.permutations(SHARED))
def test_what_was_found_for_one_activity_changes_nothing_for_another(order: list[Activity]) -> None:
    """What several launches or claims say of a key is gone through once."""
    shared = LinkTables(TOGETHER)
    found = {one.event_id: shared.found(one) for one in order}
    assert found == {one.event_id: ALONE[one.event_id] for one in order}


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=12)


@given(SPANS, st.integers(0, 30), st.integers(0, 5))
def test_climbing_finds_what_looking_at_every_range_finds(spans: list[list[int]], start: int, length: int) -> None:
    ranges = [Range(begin, end, number) for number, (begin, end) in enumerate(spans)]
    holding = [one for one in ranges if one.start_ns <= start < one.end_ns and start + length <= one.end_ns]

    def strictly_inside(one: Range, other: Range) -> bool:
        return (
            one.start_ns >= other.start_ns
            and one.end_ns <= other.end_ns
            and (one.start_ns, one.end_ns) != (other.start_ns, other.end_ns)
        )

    innermost = [one.number for one in holding if not any(strictly_inside(other, one) for other in holding)]
    assert list(ThreadRanges(ranges).holding(start, start + length)) == innermost


def test_in24_a_range_that_names_its_iteration_links_to_that_iteration_if_it_was_reported() -> None:
    anchor = "paritrace.iteration/engine/of/7"
    named = iteration("local", 100, 200, thread_id="3", trace_attachment_id=TRACE, anchor=anchor)
    work = (named, launched("call", 110, 120), in_trace("k"))
    reported = Iteration(context=ENGINE, event_id="i:seven", iteration_ref=Ref("engine/of", "7"))
    link = links(*work, reported)["k"]
    assert (link.iteration_ref, why(link)) == (Ref("engine/of", "7"), "same_thread_range")
    assert {"i:seven", "i:local"} <= set(link.evidence)
    alone = links(*work)["k"]
    assert (alone.iteration_ref, why(alone)) == (named.iteration_ref, "step_range_anchor")
