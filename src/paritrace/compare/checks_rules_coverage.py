"""Invariants of the evidence itself: whole, as long as declared, all observed (CP-25)."""

from collections.abc import Iterator, Sequence

from paritrace.compare.checks_result import Evidence, Invariant, RankCoverage
from paritrace.compare.checks_rules_parameters import NAMES_KEPT, not_checkable, outcome
from paritrace.runs.attendance import Attendance, in_words

JOURNAL = "the journal is whole"
STEPS = "each declared step was recorded"
RANKS = "every rank wrote a session and a receipt"
OBSERVED = "nothing passed by unobserved"


def coverage_invariants(coverage: RankCoverage, /) -> Iterator[Invariant]:
    """Yields the invariants of one session's evidence."""
    yield _journal(coverage)
    yield _steps(coverage)
    yield _observed(coverage)


def attendance_invariants(ranks: Sequence[Attendance], /) -> Iterator[Invariant]:
    """Yields whether exactly the expected ranks of the last restart wrote receipts; earlier restarts are told (CA-16).

    Of a run of one rank its journal already says it.
    """
    if not ranks or max(one.num_expected for one in ranks) == 1:
        return
    last = ranks[-1]
    facts = tuple(words for one in reversed(ranks) for words in in_words(one))
    if last.running and not last.without_receipt:
        yield not_checkable("evidence.ranks_present", RANKS, "; ".join(facts), rank=-1)
        return
    said = facts or (f"{last.num_expected:,} of {last.num_expected:,} ranks",)
    evidence = Evidence(facts=said, total=last.num_absent + len(last.without_receipt))
    yield outcome("evidence.ranks_present", RANKS, evidence, rank=-1, failed=not last.complete)


def _journal(coverage: RankCoverage) -> Invariant:
    facts = [f"session {coverage.session_id}: {coverage.status}"]
    if not coverage.has_receipt:
        facts.append("it wrote no receipt")
    if coverage.bytes_lost:
        facts.append(f"{coverage.bytes_lost:,} bytes in {coverage.losses:,} places hold no record")
    whole = coverage.has_receipt and coverage.status == "completed" and not coverage.losses
    evidence = Evidence(facts=tuple(facts), total=coverage.losses)
    return outcome("evidence.journal_whole", JOURNAL, evidence, rank=coverage.rank, failed=not whole)


def _steps(coverage: RankCoverage) -> Invariant:
    identity = "evidence.steps_complete"
    seen = len(coverage.steps_seen)
    if coverage.expected_steps is None:
        reason = f"{seen:,} steps were recorded; how many were expected was not declared (run --steps A:B)"
        return not_checkable(identity, STEPS, reason, rank=coverage.rank)
    evidence = Evidence(
        facts=(f"{seen:,} of {coverage.expected_steps:,} steps",), steps=coverage.steps_seen[:NAMES_KEPT]
    )
    return outcome(identity, STEPS, evidence, rank=coverage.rank, failed=seen < coverage.expected_steps)


def _observed(coverage: RankCoverage) -> Invariant:
    identity = "evidence.all_observed"
    facts = tuple(f"{reason}: {number:,}" for reason, number in sorted(coverage.gaps.items()))
    if facts:
        return not_checkable(identity, OBSERVED, "; ".join(facts), rank=coverage.rank)
    if not coverage.has_receipt:  # gaps are counted to the end of a session, and this one has none
        reason = "the session was cut off, so its gaps are not all known"
        return not_checkable(identity, OBSERVED, reason, rank=coverage.rank)
    names = coverage.not_captured
    said = ("this capture never reads: " + ", ".join(names),) if names else ()
    return outcome(identity, OBSERVED, Evidence(facts=said, names=names), rank=coverage.rank, failed=False)
