"""What each side recorded of what it was asked to, and what got lost (EV-6, CA-24)."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from paritrace.compare.load import Recorded
from paritrace.compare.result import SideCoverage
from paritrace.compare.settings import Settings
from paritrace.evidence.gaps import CountedGap
from paritrace.evidence.remarks import of_ranks
from paritrace.runs.reading import Run
from paritrace.runs.staged import STAGING_FAILED, TROUBLE

EXPECTED_STEPS = "expected_steps"


class SessionCoverage(NamedTuple):
    """What one session recorded."""

    session_id: str
    words: str
    steps: frozenset[int]
    gaps: dict[str, int]
    bytes_lost: int
    sealed: bool
    not_captured: tuple[str, ...]
    rank: int
    remarks: tuple[str, ...]  # of the capture itself


def session_coverage(session: Recorded) -> SessionCoverage:
    """Take from a session what coverage speaks of."""
    return SessionCoverage(
        session.session.session_id,
        session.session.seen.words,
        frozenset(_steps(session)),
        dict(session.gaps),
        session.bytes_lost,
        session.end is not None,
        tuple(session.not_captured),
        session.session.rank,
        session.remarks.lines(),
    )


def side_coverage(run: Run, sessions: Sequence[SessionCoverage], settings: Settings) -> SideCoverage:
    """Sum up the sessions of one side; it is complete only if what was expected was declared and seen (CA-24).

    Of the declared steps those count that are compared: who asks for `--steps 0:1` misses nothing of step 2.
    """
    seen = _common_steps(sessions)
    expected = _expected(run, settings)
    gaps: Counter[str] = Counter()
    for session in sessions:
        gaps.update(session.gaps)
    failed = run.envelope.metadata.get(STAGING_FAILED, "")
    if failed:
        gaps[CountedGap.STAGING_FAILED.value] += len(failed.split("; "))
    lost = sum(session.bytes_lost for session in sessions)
    sealed = all(session.sealed for session in sessions)
    whole = expected is not None and expected <= set(seen)
    compared = {session.session_id for session in sessions}
    alone = tuple(v.session_id for v in run.sessions if v.session_id not in compared and _chosen(v.rank, settings))
    kept_back = run.envelope.metadata.get(TROUBLE, "")
    statuses = sorted({session.words for session in sessions})
    return SideCoverage(
        steps_seen=seen,
        expected_steps=None if expected is None else len(expected),
        complete=whole and sealed and not (lost or gaps or alone or kept_back) and _attended(run, settings),
        status="; ".join(statuses),
        gaps=dict(sorted(gaps.items())),
        bytes_lost=lost,
        not_captured=tuple(sorted({name for session in sessions for name in session.not_captured})),
        ranks=run.attendance,
        remarks=(*_remarks(sessions), *(f"store: {told}" for told in (failed, kept_back) if told)),
        not_compared=alone,
    )


def _remarks(sessions: Sequence[SessionCoverage]) -> tuple[str, ...]:
    """What the captures say of themselves; of a rank that began several times, once."""
    by_rank: dict[int, tuple[str, ...]] = {}
    for session in sessions:
        by_rank[session.rank] = by_rank.get(session.rank, ()) + session.remarks
    return of_ranks(by_rank)


def _attended(run: Run, settings: Settings) -> bool:
    """Whether every rank that was to be captured wrote a session and a receipt; of chosen ranks, those."""
    found = [one for one in run.attendance if one.last]
    if settings.ranks is None:
        return all(one.complete for one in found)
    return not any(set(settings.ranks) & {*one.absent, *one.without_receipt, *one.running} for one in found)


def _chosen(rank: int, settings: Settings) -> bool:
    return settings.ranks is None or rank in settings.ranks


def _common_steps(sessions: Sequence[SessionCoverage]) -> tuple[int, ...]:
    """The steps of which every session recorded calls or a mark."""
    steps = [set(session.steps) for session in sessions]
    return tuple(sorted(set[int].intersection(*steps))) if steps else ()


def _steps(session: Recorded) -> set[int]:
    used = session.calls.distinct("context")
    return {session.contexts[context].step for context in used} | {mark.step for mark in session.steps}


def _expected(run: Run, settings: Settings) -> set[int] | None:
    text = run.envelope.metadata.get(EXPECTED_STEPS, "")
    first, _, end = text.partition(":")
    if not first.isdecimal() or not end.isdecimal():
        return None
    shift = max((settings.shift_of(run.run_id, view.session_id) for view in run.sessions), default=0)
    return {step for step in range(int(first) + shift, int(end) + shift) if settings.takes_step(step)}
