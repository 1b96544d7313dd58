"""Coverage of a list or sum: how much was observed of how much, and why not all (EV-6)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from paritrace.evidence.gaps import Gap


class ExpectedGap(StrEnum):
    """Why the expected number is not known."""

    NOT_DECLARED = "not_declared"  # nobody said how many there should be
    NOT_RECORDED = "not_recorded"  # the producer does not write its count
    UNREADABLE = "unreadable"  # the count was written, but cannot be read


class CoverageState(StrEnum):
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    UNVERIFIED = "unverified"


class Coverage(Struct, frozen=True, forbid_unknown_fields=True):
    """`complete` only if expected is known, equal to observed, and the list was declared or proven complete."""

    observed: int
    expected: int | Gap[ExpectedGap]
    complete: bool
    gaps: dict[str, int] = {}


def coverage(observed: int, *, expected: int | Gap[ExpectedGap], declared: bool, gaps: Mapping[str, int]) -> Coverage:
    """Return the coverage of `observed` things; `declared`: the list was declared or proven complete."""
    counted = {reason: count for reason, count in sorted(gaps.items()) if count}
    complete = declared and observed == expected and not counted
    return Coverage(observed=observed, expected=expected, complete=complete, gaps=counted)


def joined(first: Coverage, second: Coverage) -> Coverage:
    """Return the coverage of two disjoint lists together."""
    gaps = dict(first.gaps)
    for reason, count in second.gaps.items():
        gaps[reason] = gaps.get(reason, 0) + count
    expected = _sum(first.expected, second.expected)
    return Coverage(
        observed=first.observed + second.observed,
        expected=expected,
        complete=first.complete and second.complete,
        gaps=dict(sorted(gaps.items())),
    )


def state(of: Coverage) -> CoverageState:
    """Return the word of the closed vocabulary for a coverage."""
    if of.complete:
        return CoverageState.COMPLETE
    match of.expected:
        case Gap():
            return CoverageState.INCOMPLETE if of.gaps else CoverageState.UNVERIFIED
        case int():
            short = of.gaps or of.observed != of.expected
            return CoverageState.INCOMPLETE if short else CoverageState.UNVERIFIED
        case _:
            assert_never(of.expected)


def in_words(of: Coverage) -> str:
    """Return `n of m` (or `n of an unknown number`), as every sum prints it (P1)."""
    total = "an unknown number" if isinstance(of.expected, Gap) else f"{of.expected:,}"
    return f"{of.observed:,} of {total}"


def _sum(first: int | Gap[ExpectedGap], second: int | Gap[ExpectedGap]) -> int | Gap[ExpectedGap]:
    if isinstance(first, Gap):
        return first
    if isinstance(second, Gap):
        return second
    return first + second
