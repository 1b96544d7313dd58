"""What holds of any attempts: order changes nothing, missing evidence only widens (AT-2, AT-9)."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace import attempts
from paritrace.attempts.figures import Figure, Summing
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.manifest import Attempt, Execution, Relation, VerdictKind
from paritrace.attempts.result import Fractions, OfConfiguration, Summary
from paritrace.attempts.statistics.records import Absent
from paritrace.evidence.coverage import CoverageState
from tests.attempts.written import accounting, attempt, loaded, manifest, usage

verdicts = st.sampled_from([VerdictKind.PASS, VerdictKind.FAIL, None])
counts = st.none() | st.integers(0, 10**12)


@st.composite
def tries(draw: st.DrawFn, configuration: str = "a") -> Attempt:
    task, number = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    calls = draw(
        st.lists(
            st.builds(
                lambda i, c, o: usage(
                    input_tokens=i, cached_input_tokens=c, output_tokens=o, input_includes_cache=None
                ),
                counts,
                counts,
                counts,
            ),
            max_size=2,
        )
    )
    cost = draw(st.none() | st.floats(0, 1e6))
    return attempt(
        f"{configuration}-t{task}-{number}",
        draw(verdicts),
        accounting=draw(st.sampled_from([None, accounting(*calls, cost=cost)])),
        execution=draw(st.sampled_from(list(Execution))),
        relation=draw(st.sampled_from(list(Relation))),
        duration_seconds=draw(st.none() | st.floats(0, 1e6)),
    )


some = st.lists(st.sampled_from("ab").flatmap(tries), min_size=1, max_size=10)


def summarised(listed: list[Attempt]) -> Summary:
    found = attempts.summarize(loaded(manifest(listed)), details=True)
    return replace(found, manifest_sha256="")


@settings(max_examples=60, deadline=None)
@given(some, st.randoms(use_true_random=False))
def test_at_17_the_order_of_entries_changes_no_byte(listed: list[Attempt], random: object) -> None:
    shuffled = list(listed)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert msgspec.json.encode(summarised(listed)) == msgspec.json.encode(summarised(shuffled))


@settings(max_examples=40, deadline=None)
@given(some)
def test_at_2_every_entry_twice_is_every_entry_once(listed: list[Attempt]) -> None:
    once, twice = summarised(listed), summarised(listed + listed)
    assert once.configurations == twice.configurations


@settings(max_examples=60, deadline=None)
@given(some, st.integers(0, 3))
def test_at_12_a_missing_attempt_only_widens_the_bounds(listed: list[Attempt], task: int) -> None:
    listed = [one for one in listed if one.configuration_id == "a"] or [attempt("a-t0-0")]
    lost = attempt(f"a-t{task}-9", None, present=False, accounting=None)
    before, after = summarised(listed).configurations[0], summarised([*listed, lost]).configurations[0]
    assert _worst(after)[0] * _num(after) == _close(_worst(before)[0] * _num(before))
    low, high = _worst(before)
    wider = _worst(after)
    assert wider[0] <= low + 1e-12
    assert wider[1] >= high - 1e-12
    for name, found in after.tokens.items():
        assert found.state is not CoverageState.COMPLETE
        assert found.high is None
        assert found.low == before.tokens[name].low


@settings(max_examples=60, deadline=None)
@given(some)
def test_at_9_a_total_with_a_gap_is_never_complete(listed: list[Attempt]) -> None:
    for one in summarised(listed).configurations:
        sums = [*one.tokens.values(), *(cost.sum for cost in one.costs), one.durations.task_seconds]
        for found in sums:
            whole = not found.coverage.gaps and found.coverage.observed == found.coverage.expected
            assert (found.state is CoverageState.COMPLETE) == whole == found.coverage.complete
            assert found.low <= (found.low if found.high is None else found.high)
            assert found.observed_sum <= found.low


@given(st.lists(st.floats(0, 1e15), max_size=30), st.randoms(use_true_random=False))
def test_at_9_sums_of_floats_have_no_order(values: list[float], random: object) -> None:
    def total(listed: list[float]) -> float:
        summing = Summing()
        for value in listed:
            summing.add(Figure(value, value))
        return summing.result(declared=True).observed_sum

    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert total(values) == total(shuffled)


def test_at_9_a_gap_of_the_whole_list_is_in_every_sum() -> None:
    summing = Summing()
    summing.add(Figure(5, 5))
    summing.note(AttemptGap.RETRY_DESTROYED, 6)
    found = summing.result(declared=True)
    assert (found.observed_sum, found.high, found.state) == (5, None, CoverageState.INCOMPLETE)
    assert found.coverage.gaps == {"retry_destroyed": 6}


def test_at_6_both_readings_bound_a_sum() -> None:
    summing = Summing()
    summing.add(Figure(130_213, 260_421, (AttemptGap.CONVENTION_UNKNOWN,)))
    summing.add(Figure(7, 7))
    found = summing.result(declared=True)
    assert (found.observed_sum, found.low, found.high) == (7, 130_220, 260_428)
    assert found.state is CoverageState.INCOMPLETE


def _worst(one: OfConfiguration) -> tuple[float, float]:
    found = one.evaluators[0].fractions
    assert not isinstance(found, Absent)
    assert found.worst_case is not None
    return found.worst_case


def _num(one: OfConfiguration) -> int:
    found = one.evaluators[0].fractions
    assert isinstance(found, Fractions)
    return found.num_attempts


def _close(value: float) -> object:
    import pytest

    return pytest.approx(value)
