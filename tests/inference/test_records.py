"""The invariants of events hold from their making, and in every line that is read (IN-1 to IN-3, EV-2)."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.evidence.ids import Ref
from paritrace.inference.identities import event_bytes, event_digest, events_digest
from paritrace.inference.lines import LineDecoder, encode_definition
from paritrace.inference.records import AnyEvent, Capabilities, ClockAlignment, Link, Loss, Stage
from paritrace.inference.vocabulary import Attribution, Basis, LinkReason, LossReason, LossStatus
from tests.inference.evidence import ENGINE, claim, context, iteration, kernel, launch, member, request

REF = Ref("a", "b")


def capabilities(**more: Any) -> Capabilities:
    return Capabilities(context=ENGINE, event_id="c", component="x", available=True, **more)


def link(**more: Any) -> Link:
    return Link(context=ENGINE, event_id="l", activity_ref=REF, rule="link/1", **more)


def loss(**more: Any) -> Loss:
    return Loss(context=ENGINE, event_id="l", source="s", what="w", reason=LossReason.DROPPED, **more)


WRONG: dict[str, Callable[[], object]] = {
    "an end before its start": lambda: iteration("1", 5, 4),
    "linked without an iteration": lambda: kernel("1", attribution=Attribution.LINKED),
    "an iteration without being linked": lambda: kernel("1", iteration_ref=REF),
    "collected and not enabled": lambda: capabilities(supported=("a",), collected=("a",)),
    "enabled and not supported": lambda: capabilities(enabled=("a",)),
    "a capability twice": lambda: capabilities(supported=("a", "a")),
    "unavailable, with capabilities": lambda: replace(capabilities(supported=("a",)), available=False),
    "a stage of nothing": lambda: Stage(context=ENGINE, event_id="s", stage_ref=REF, name="prefill"),
    "a clock aligned with itself": lambda: ClockAlignment(
        context=ENGINE, event_id="a", from_clock_domain="a", to_clock_domain="a", offset_ns=5, uncertainty_ns=0
    ),
    "a link that says nothing": link,
    "a link with both": lambda: link(iteration_ref=REF, basis=Basis.EXACT_ID, reason=LinkReason.NO_KEY),
    "a basis without an iteration": lambda: link(basis=Basis.EXACT_ID),
    "a loss of 0 that is reported": lambda: loss(count=0),
    "zero reported of something": lambda: loss(count=1, status=LossStatus.ZERO_REPORTED),
    "not reported, with a number": lambda: loss(count=1, status=LossStatus.NOT_REPORTED),
    "half a byte range": lambda: loss(first_byte=1),
    "NaN": lambda: request("1", metadata={"x": math.nan}),
    "infinity deep inside": lambda: request("1", metadata={"x": [{"y": -math.inf}]}),
    "an integer beyond 64 bits": lambda: request("1", metadata={"x": 2**64}),
    "a key that is no text": lambda: request("1", metadata={1: 2}),
    "a value JSON has not": lambda: request("1", metadata={"x": b"bytes"}),
    "intervals that overlap": lambda: kernel("1", 0, 10, intervals=((0, 5), (4, 2))),
    "intervals outside": lambda: kernel("1", 0, 10, intervals=((0, 11),)),
    "intervals without times": lambda: kernel("1", None, None, intervals=((0, 1),)),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_hold_cannot_be_made(what: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        WRONG[what]()


def test_metadata_has_one_form_and_shares_nothing() -> None:
    given_list = [1, 2]
    one = request("1", metadata={"b": (1, 2), "a": given_list})
    given_list.append(3)
    assert one.metadata == {"b": [1, 2], "a": [1, 2]}
    assert event_digest(one) == event_digest(request("1", metadata={"a": [1, 2], "b": [1, 2]}))


def test_true_and_one_are_two_things() -> None:
    assert event_digest(request("1", metadata={"a": True})) != event_digest(request("1", metadata={"a": 1}))


def test_metadata_that_is_too_deep_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(70):
        deep = {"x": deep}
    with pytest.raises(ValueError, match="deeper"):
        request("1", metadata=deep)


def test_equal_facts_are_one_context_and_any_other_fact_is_another() -> None:
    assert context() == context() == ENGINE
    assert len({context(), context(pid=8), context(host=None), context(device_uuid="GPU-1")}) == 4


EVENTS: list[AnyEvent] = [
    request("1", start_ns=1, end_ns=2, status="ok", metadata={"é\u2028": [None, 1.5]}),
    iteration("1", thread_id="3", anchor="ProfilerStep#1"),
    member("1", "1"),
    kernel("1", runtime_correlation_id=str(2**64 + 1), intervals=((0, 3), (4, 6))),
    claim("2", "1"),
    launch("3", 1, 2),
    capabilities(supported=("a", "b"), enabled=("a",)),
    link(reason=LinkReason.AMBIGUOUS, candidates=(REF,), num_candidates=3),
    loss(count=3, first_byte=0, num_bytes=2),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda one: type(one).__name__)
def test_a_line_is_its_event(event: AnyEvent) -> None:
    decoder = LineDecoder()
    decoder.decode(encode_definition(event.context)[:-1])
    assert decoder.decode(event_bytes(event)) == event


def test_ids_beyond_64_bits_do_not_merge() -> None:
    assert event_digest(kernel("1", cuda_correlation_id=str(2**64))) != event_digest(
        kernel("1", cuda_correlation_id=str(2**64 + 1))
    )


LINE = event_bytes(iteration("1"))
BAD_LINES = {
    "no context before": (b"", LINE, "is not defined"),
    "a number that is not finite": (None, LINE.replace(b"1000", b"NaN"), "not_finite|NaN|invalid"),
    "a key twice": (None, LINE.replace(b'"event_id"', b'"event_id":"x","event_id"'), "duplicate_key"),
    "a key that is unknown": (None, LINE.replace(b'"event_id"', b'"colour":"x","event_id"'), "unknown field"),
    "a boolean for an integer": (None, LINE.replace(b"1000", b"true"), "int"),
    "an empty id": (None, LINE.replace(b'"i:1"', b'""'), "length >= 1"),
    "an empty reference": (None, LINE.replace(b'"id":"1"', b'"id":""'), "length >= 1"),
    "an invariant": (None, LINE.replace(b"1000", b"-1"), "lies before the start"),
    "two values": (None, LINE + LINE, "holds 2 JSON values|trailing"),
    "a type nobody knows": (None, LINE.replace(b'"iteration"', b'"colour"'), "colour"),
    "a lone surrogate": (None, LINE.replace(b'"i:1"', b'"\\ud800"'), "surrogate"),
    "a context defined otherwise": (
        None,
        encode_definition(ENGINE)[:-1].replace(b'"pid":7', b'"pid":8'),
        "defined twice",
    ),
    "beyond every time": (None, LINE.replace(b"1000", str(2**62).encode()), "int"),
}


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_line_that_does_not_hold_is_told(what: str) -> None:
    before, data, said = BAD_LINES[what]
    decoder = LineDecoder()
    if before is None:
        decoder.decode(encode_definition(ENGINE)[:-1])
    with pytest.raises(ValueError, match=said):
        decoder.decode(data)


@given(st.permutations(EVENTS), st.lists(st.sampled_from(EVENTS)))
def test_a_digest_of_events_knows_no_order_and_no_repetition(order: list[AnyEvent], again: list[AnyEvent]) -> None:
    assert events_digest([*order, *again]) == events_digest(EVENTS)


@settings(max_examples=20)  # values of this depth are slow to draw
@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**63), 2**64 - 1)
            | st.text(st.characters(exclude_categories=["Cs"]))
            | st.floats(allow_nan=False, allow_infinity=False),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
            max_leaves=8,
        ),
    )
)
def test_any_metadata_comes_back(metadata: dict[str, object]) -> None:
    try:
        line = event_bytes(request("1", metadata=metadata))
    except UnicodeEncodeError:
        return
    decoder = LineDecoder()
    decoder.decode(encode_definition(ENGINE)[:-1])
    found = decoder.decode(line)
    assert msgspec.json.decode(line) == msgspec.json.decode(event_bytes(found))  # type: ignore[arg-type]
