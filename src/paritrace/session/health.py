"""Two signals of a rank, its heartbeat and the progress of its work: findings first, a fail-stop only later (SE-13)."""

from paritrace.session.commands import Reason
from paritrace.session.coordinator_ends import fail_stop
from paritrace.session.coordinator_events import SetTimer
from paritrace.session.coordinator_record import Known, Turn
from paritrace.session.messages import Beat
from paritrace.session.states import RankState

_WORKS = frozenset({RankState.LOADING, RankState.RUNNING, RankState.SAVING, RankState.EXPORTING_PREVIEW})
_STEPS_OF_P99 = 10.0  # a step that takes ten times the slowest of a hundred is not one of them
UNRESPONSIVE = "unresponsive"
STALLED = "stalled"
BEAT, FAIL_STOP = "beat", "fail_stop"  # timers, one of each per rank: `beat:0`


def stalled_beyond(beat: Beat, *, stalled_seconds: float) -> float | None:
    """Return after how many seconds without progress this rank is stalled, where it is; None where it is not.

    A deadline that the work declared itself (loading, compiling) stands in place of the rule.
    """
    limit = beat.deadline_seconds
    if limit is None:
        limit = max(stalled_seconds, _STEPS_OF_P99 * (beat.step_p99_seconds or 0.0))
    return limit if beat.state in _WORKS and beat.progress_age_seconds > limit else None


def heard(turn: Turn, rank: int) -> None:
    """A rank has written: its heart beats, and the time to the next word begins anew."""
    known = turn.state.ranks[rank]
    turn.act(SetTimer(f"{BEAT}:{rank}", turn.state.bounds[UNRESPONSIVE]))
    _find(turn, known, UNRESPONSIVE, None)


def judged(turn: Turn, beat: Beat) -> None:
    """Look at the progress that a beat tells of."""
    limit = stalled_beyond(beat, stalled_seconds=turn.state.bounds[STALLED])
    words = None if limit is None else f"no progress for more than {limit:g} s, at step {beat.step}"
    _find(turn, turn.state.ranks[beat.rank], STALLED, words)


def missed(turn: Turn, rank: int) -> None:
    """No word has come from a rank for too long."""
    known = turn.state.ranks[rank]
    if known.joined is not None and not (known.gone or known.leaving):
        _find(turn, known, UNRESPONSIVE, f"no heartbeat for {turn.state.bounds[UNRESPONSIVE]:g} s")


def overdue(turn: Turn, rank: int) -> None:
    """A finding has stood for as long as it may."""
    findings = turn.state.ranks[rank].findings
    if findings:
        reasons = tuple(Reason(rank, finding.split(":")[0], finding) for finding in findings)
        fail_stop(turn, reasons[0].code, f"rank {rank}: {findings[0]}", reasons)


def _find(turn: Turn, known: Known, finding: str, words: str | None) -> None:
    """Have a finding stand, or not; the time until a fail-stop runs while any stands."""
    others = tuple(one for one in known.findings if not one.startswith(finding))
    had = len(others) < len(known.findings)
    if words is None and not had:
        return
    findings = others if words is None else (*others, f"{finding}: {words}")
    turn.know(known.rank, findings=findings)
    if had and words is not None:
        return
    turn.record("finding", rank=known.rank, finding=finding, words=words or "over")
    if not findings:
        turn.act(SetTimer(f"{FAIL_STOP}:{known.rank}", None))
    elif not known.findings and turn.state.bounds[FAIL_STOP] > 0:
        turn.act(SetTimer(f"{FAIL_STOP}:{known.rank}", turn.state.bounds[FAIL_STOP]))
