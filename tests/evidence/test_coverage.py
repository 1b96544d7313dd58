"""Coverage: complete only when nothing is missing and that is known (EV-6, P1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.evidence.coverage import Coverage, CoverageState, ExpectedGap, coverage, in_words, joined, state
from paritrace.evidence.gaps import Gap

UNKNOWN: Gap[ExpectedGap] = Gap(ExpectedGap.NOT_DECLARED)

counts = st.integers(0, 50)
expectations = counts | st.builds(Gap, st.sampled_from(ExpectedGap))
gap_counts = st.dictionaries(st.sampled_from(["loss", "over_budget"]), st.integers(0, 3))
made = st.builds(
    lambda observed, expected, declared, gaps: coverage(observed, expected=expected, declared=declared, gaps=gaps),
    counts,
    expectations,
    st.booleans(),
    gap_counts,
)


@pytest.mark.parametrize(
    ("observed", "expected", "declared", "gaps", "seen"),
    [
        (5, 5, True, {}, CoverageState.COMPLETE),
        (0, 0, True, {}, CoverageState.COMPLETE),
        (5, 5, False, {}, CoverageState.UNVERIFIED),
        (4, 5, True, {}, CoverageState.INCOMPLETE),
        (6, 5, True, {}, CoverageState.INCOMPLETE),
        (5, 5, True, {"loss": 1}, CoverageState.INCOMPLETE),
        (5, 5, True, {"loss": 0}, CoverageState.COMPLETE),
        (5, UNKNOWN, True, {}, CoverageState.UNVERIFIED),
        (5, UNKNOWN, True, {"loss": 2}, CoverageState.INCOMPLETE),
    ],
)
def test_the_word_for_a_coverage(
    observed: int, expected: int | Gap[ExpectedGap], declared: bool, gaps: dict[str, int], seen: CoverageState
) -> None:
    found = coverage(observed, expected=expected, declared=declared, gaps=gaps)
    assert state(found) is seen
    assert found.complete is (seen is CoverageState.COMPLETE)


@given(made, made)
def test_a_joined_coverage_is_complete_only_if_both_are(first: Coverage, second: Coverage) -> None:
    both = joined(first, second)
    assert both.complete is (first.complete and second.complete)
    assert both.observed == first.observed + second.observed
    assert isinstance(both.expected, Gap) is (isinstance(first.expected, Gap) or isinstance(second.expected, Gap))
    assert sum(both.gaps.values()) == sum(first.gaps.values()) + sum(second.gaps.values())


@given(made, made, made)
def test_joining_is_associative(first: Coverage, second: Coverage, third: Coverage) -> None:
    left, right = joined(joined(first, second), third), joined(first, joined(second, third))
    assert (left.observed, left.complete, left.gaps) == (right.observed, right.complete, right.gaps)


def test_a_sum_prints_n_of_m() -> None:
    assert in_words(coverage(1200, expected=1300, declared=True, gaps={})) == "1,200 of 1,300"
    assert in_words(coverage(3, expected=UNKNOWN, declared=True, gaps={})) == "3 of an unknown number"
