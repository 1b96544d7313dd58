"""Ranges of a trace join iterations of a log by unique anchors, else nothing (IN-12). Logs and traces are synthetic."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.inference.execution_ranges import Scheduled, kind_of_range, scheduled_in
from paritrace.inference.range_correspondence import WhyApart, join_ranges
from paritrace.inference.records import Iteration
from tests.inference.engine_steps import range_name, steps, write_trace
from tests.inference.importers.kineto_reading import imported

DECODE = Scheduled(0, 0, 8, 8)


def test_equal_sequences_join_where_counts_are_unique() -> None:
    made = steps(60, seed=1)
    joined = join_ranges(made, made)
    assert all(one == other for one, other in joined.pairs)
    assert len(joined.pairs) == sum(made.count(one) == 1 for one in made)
    assert set(joined.ranges_apart.values()) == {WhyApart.NOT_UNIQUE}
    assert len(joined.pairs) + len(joined.in_order) == 60


@given(st.integers(0, 2**16), st.integers(0, 59))
def test_one_line_removed_leaves_undetermined_and_shifts_nothing(seed: int, gone: int) -> None:
    made = steps(60, seed=seed)
    log = made[:gone] + made[gone + 1 :]
    joined = join_ranges(made, log)
    for one, other in joined.pairs:
        assert other == (one if one < gone else one - 1) or made.count(made[one]) > 1
    assert all(made[one] == log[other] for one, other in joined.pairs)
    assert gone not in {one for one, _ in joined.pairs} or made.count(made[gone]) > 1


_STEPS = st.lists(
    st.builds(Scheduled, st.integers(0, 2), st.integers(0, 2), st.integers(0, 1), st.just(0)), max_size=14
)


@given(_STEPS, _STEPS)
def test_every_step_is_joined_or_has_a_reason(a: list[Scheduled], b: list[Scheduled]) -> None:
    joined, mirrored = join_ranges(a, b), join_ranges(b, a)
    assert {(other, one) for one, other in joined.pairs} == set(mirrored.pairs)
    assert sorted([one for one, _ in joined.pairs] + list(joined.ranges_apart)) == list(range(len(a)))
    assert sorted([other for _, other in joined.pairs] + list(joined.iterations_apart)) == list(range(len(b)))
    for one, other in joined.pairs:
        assert a[one] == b[other]
        assert a.count(a[one]) == b.count(b[other]) == 1
    assert list(joined.pairs) == sorted(joined.pairs)
    assert [other for _, other in joined.pairs] == sorted(other for _, other in joined.pairs)


def test_equal_steps_of_unequal_number_stay_apart() -> None:
    first, last = Scheduled(1, 10, 7, 7), Scheduled(2, 20, 7, 7)
    two = join_ranges([first, DECODE, DECODE, last], [first, DECODE, last])
    assert two.pairs == ((0, 0), (3, 2))
    assert two.ranges_apart == {1: WhyApart.NOT_UNIQUE, 2: WhyApart.NOT_UNIQUE}
    alike = join_ranges([first, DECODE, DECODE, last], [first, DECODE, DECODE, last])
    assert alike.pairs == ((0, 0), (3, 3))
    assert alike.in_order == ((1, 1), (2, 2))


def test_steps_in_another_order_are_crossed() -> None:
    a, b = Scheduled(1, 10, 0, 0), Scheduled(1, 20, 0, 0)
    joined = join_ranges([a, b], [b, a])
    assert joined.pairs == ()
    assert joined.ranges_apart == {0: WhyApart.CROSSED, 1: WhyApart.CROSSED}
    assert join_ranges([a], [b]).ranges_apart == {0: WhyApart.NOT_THERE}


def test_ranges_of_older_engines_join_by_requests_alone() -> None:
    made = [Scheduled(1, 10, 0, 0), Scheduled(0, 0, 1, 1), Scheduled(2, 5, 1, 1)]
    older = [scheduled_in(range_name(step, older=True)) for step in made]
    joined = join_ranges([one for one in older if one is not None], made)
    assert joined.by_requests_only
    assert joined.pairs == ((0, 0), (1, 1), (2, 2))


@pytest.mark.parametrize("older", [False, True])
def test_ranges_of_a_trace_become_iterations_with_what_was_scheduled(tmp_path: Path, older: bool) -> None:
    made = steps(20, seed=3)
    events, account = imported(write_trace(tmp_path / "t.json", made, older=older))
    found = [scheduled_in(one.anchor or "") for one in events if isinstance(one, Iteration)]
    wanted = [Scheduled(s.context_requests, None, s.generation_requests, None) if older else s for s in made]
    assert found == wanted
    assert account.counts["in_trace:linked"] == 20


@pytest.mark.parametrize(
    "name",
    [
        "execute_context_1(2)_generation_3",
        "execute_context_-1(2)_generation_3(4)",
        "xexecute_new_1_cached_2",
        "ProfilerStep#x",
        "execute_context_1(2)_generation_3(4)x",
    ],
)
def test_other_names_mark_nothing(name: str) -> None:
    assert scheduled_in(name) is None
    assert kind_of_range(name) is None
