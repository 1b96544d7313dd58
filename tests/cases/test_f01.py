"""F-01, F-02: the rank that says an error, or whose error comes first, is not the cause by that fact (SE-12)."""

import signal

from paritrace.process.stop_facts import Exited, Signalled
from paritrace.session.commands import Reason
from paritrace.session.engines.seam import ExitEvidence
from paritrace.session.failure import UNDETERMINED, LastHeard, RankFailure, Role, judged
from paritrace.session.states import RankState

WATCHDOG = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4711, OpType=ALLREDUCE)"


def ended(rank: int, wait: Exited | Signalled | None, *, says: str = "", finding: str = "") -> RankFailure:
    errors = (Reason(rank, "step_raised", says),) if says else ()
    last = LastHeard(RankState.RUNNING, 3, 12, findings=(finding,) if finding else (), errors=errors)
    return RankFailure(rank, Role.FAILED, "", ExitEvidence(rank, 100 + rank, wait), last)


def test_f01_only_the_waiting_peer_reports_and_the_first_failure_is_not_established() -> None:
    """Both said an error: the one that raised, and the one that waited for it."""
    raised, waited = ended(0, None, says="ValueError: bad batch"), ended(1, Exited(1), says="timed out waiting")
    cause, words, ranks = judged((raised, waited))
    assert cause == UNDETERMINED
    assert "0" in words
    assert "1" in words
    assert Role.CAUSE not in {one.role for one in ranks}


def test_f02_the_same_watchdog_error_and_sigabrt_on_all_survivors_name_nobody() -> None:
    survivors = tuple(ended(rank, Signalled(signal.SIGABRT), says=WATCHDOG) for rank in range(3))
    assert judged(survivors)[0] == UNDETERMINED


def test_f02_among_survivors_that_abort_the_rank_that_was_killed_is_named() -> None:
    survivors = tuple(ended(rank, Signalled(signal.SIGABRT), says=WATCHDOG) for rank in range(2))
    assert judged((*survivors, ended(2, Signalled(signal.SIGKILL))))[0] == "rank 2"
