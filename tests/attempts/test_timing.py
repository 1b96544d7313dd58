"""Three scopes of time that are never combined (AT-11, D-23)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.attempts.manifest import Invocation, Resource
from paritrace.attempts.result import Warned
from paritrace.attempts.statistics.durations import Incidence
from paritrace.attempts.statistics.records import Absent
from paritrace.attempts.timing import invocation_times
from tests.attempts.written import attempt, only, summary

S = 1_000_000_000
spans = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 20)).map(lambda one: (one[0], one[0] + one[1])), max_size=8
)


def between(start: int, end: int) -> Invocation:
    return Invocation(start * S, end * S)


def test_at_20_parallel_invocations_that_overlap() -> None:
    found = only(summary([attempt("a-t1-1", invocations=(between(0, 10), between(5, 12), between(20, 21)))]))
    assert found.durations.invocation_union_seconds.observed_sum == 13
    assert (found.durations.num_invocations, found.durations.num_overlapping) == (3, 2)


def test_at_20_timing_scopes_that_do_not_fit() -> None:
    found = summary([attempt("a-t1-1", duration_seconds=5.0, invocations=(between(0, 10),))])
    assert only(found).durations.task_seconds.observed_sum == 5.0
    assert only(found).durations.invocation_union_seconds.observed_sum == 10.0
    assert Warned.SCOPES_DO_NOT_FIT in {warning.code for warning in found.warnings}


@given(spans)
def test_at_11_the_union_is_what_a_count_of_seconds_says(given_spans: list[tuple[int, int]]) -> None:
    found = invocation_times(between(*one) for one in given_spans)
    covered = {second for start, end in given_spans for second in range(start, end)}
    assert found.union_seconds == (len(covered) if given_spans else None)


def test_at_11_a_missing_end_leaves_the_union_unknown() -> None:
    found = invocation_times([between(0, 5), Invocation(3 * S), Invocation(elapsed_seconds=2.0), between(9, 8)])
    assert found.union_seconds is None
    assert sorted(found.seconds, key=str) == [2.0, 5.0, None, None]


def test_at_11_resource_observations_are_listed_and_never_added() -> None:
    seen = tuple(Resource("tree", "resident_memory_bytes", value) for value in (10.0, 20.0))
    found = summary([attempt("a-t1-1", resources=seen)])
    assert only(found).durations.num_resources == 2
    assert found.details is not None
    assert found.details[0].resources == ("tree resident_memory_bytes 10.0", "tree resident_memory_bytes 20.0")


def test_d_22_without_durations_there_is_no_time_to_pass() -> None:
    judge = only(summary([attempt("a-t1-1")])).evaluators[0]
    assert isinstance(judge.time_to_pass, Absent)
    timed = only(summary([attempt("a-t1-1", duration_seconds=3.0)])).evaluators[0].time_to_pass
    assert isinstance(timed, Incidence)
    assert timed.incidence == pytest.approx((1.0,))
