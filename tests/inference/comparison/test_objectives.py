"""Which requests keep an objective, and what of it is not known (IN-17, IN-27)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import RequestError
from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.metrics import Span, is_fraction, is_timed, lower_is_better, scale_of
from paritrace.inference.comparison.objectives import (
    MOST_OBJECTIVES,
    Attained,
    Objective,
    Target,
    objective_of,
    objectives_of,
)
from paritrace.inference.comparison.vocabulary import CompareGap, Scale

CHAT = objective_of("chat: time_to_first_output<=0.5, mean_between_tokens <= .05")


def test_in17_an_objective_is_written_as_it_reads() -> None:
    targets = (Target("time_to_first_output", 0.5), Target("mean_between_tokens", 0.05))
    assert Objective("chat", targets) == CHAT
    assert CHAT.metric == "attained.chat"
    assert (scale_of(CHAT.metric, ratio=Scale.MEANS_RATIO), lower_is_better(CHAT.metric)) == (Scale.DIFFERENCE, False)
    assert is_fraction(CHAT.metric)
    assert is_timed(CHAT.metric)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "latency<=1",
        "a:",
        "A:latency<=1",
        "a:latency>=1",
        "a:latency<=0",
        "a:latency<=nan",
        "a:latency.p99<=1",
        "a:x<=1",
        "a:latency<=1,",
        "a:latency<=1,latency<=2",
    ],
)
def test_in17_what_is_no_objective_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        objective_of(text)
    assert refused.value.code == "bad_objective"


def test_in17_names_differ_and_there_are_not_too_many() -> None:
    assert [one.name for one in objectives_of(["a:latency<=1", "b:latency<=1"])] == ["a", "b"]
    many = [f"o{number}:latency<=1" for number in range(MOST_OBJECTIVES + 1)]
    for texts in (["a:latency<=1", "a:latency<=2"], many):
        with pytest.raises(RequestError) as refused:
            objectives_of(texts)
        assert refused.value.code == "bad_objective"


def attained(*requests: tuple[float | None, float | None], tokens: int | None = 9) -> Attained:
    found = Attained(CHAT)
    for first, between in requests:
        measured = {"time_to_first_output": first, "mean_between_tokens": between}
        found.take({name: one for name, one in measured.items() if one is not None}, output_tokens=tokens)
    return found


def test_in17_all_targets_have_to_hold_and_what_is_not_measured_counts_both_ways() -> None:
    kept, missed, late = (0.5, 0.05), (0.6, 0.01), (0.1, 0.06)
    unmeasured, unmeasured_and_missed = (0.1, None), (0.6, None)
    found = attained(kept, missed, late, unmeasured, unmeasured_and_missed).figure(num_offered=10, num_unknown=3)
    assert found == Span(0.1, 0.5)  # five of ten offered did not succeed, and of three of them it is not known


def test_in17_an_answer_of_one_token_has_nothing_between_tokens() -> None:
    assert attained((0.1, None), tokens=1).figure(num_offered=1, num_unknown=0) == Span(1.0, 1.0)
    assert attained((None, None), tokens=1).figure(num_offered=1, num_unknown=0) == Span(0.0, 1.0)


def test_in17_of_no_requests_there_is_no_fraction() -> None:
    assert attained().figure(num_offered=0, num_unknown=0) == Absent(CompareGap.NO_REQUESTS)


_TIME = st.one_of(st.none(), st.floats(0, 1))


@given(st.lists(st.tuples(_TIME, _TIME)), st.integers(0, 5), st.integers(0, 5))
def test_in17_bounds_hold_whatever_was_not_measured(
    requests: list[tuple[float | None, float | None]], failed: int, unknown: int
) -> None:
    offered = len(requests) + failed + unknown
    found = attained(*requests).figure(num_offered=offered, num_unknown=unknown)
    if isinstance(found, Absent):
        assert not offered
        return
    for filled in (0.0, 1.0):  # the best and the worst that could have been measured
        known = [tuple(filled if one is None else one for one in request) for request in requests]
        kept = sum(first <= 0.5 and between <= 0.05 for first, between in known)
        assert found.low <= kept / offered <= found.high
        assert kept / offered == (found.low if filled else found.high - unknown / offered) or unknown
