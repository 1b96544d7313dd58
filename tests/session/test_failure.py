import signal

import pytest

from paritrace.process.stop_facts import Exited, Signalled
from paritrace.session.commands import Reason
from paritrace.session.engines.seam import ExitEvidence
from paritrace.session.failure import LastHeard, RankFailure, Role, exit_words, judged
from paritrace.session.states import RankState

KILLED = Signalled(signal.SIGKILL)
CLOSED = "Connection closed by peer"


def rank_with(
    rank: int,
    wait: Exited | Signalled | None = None,
    *,
    by_us: tuple[int, ...] = (),
    error: str = "",
    finding: str = "",
    launcher: bool = False,
    closed: bool = False,
) -> RankFailure:
    evidence = ExitEvidence(
        rank=rank, pid=100 + rank, wait=wait, signals_by_us=by_us, launcher_owned=launcher, line_closed=closed
    )
    last = LastHeard(
        state=RankState.RUNNING,
        epoch=3,
        step=12,
        findings=(finding,) if finding else (),
        errors=(Reason(rank, "rank_failed", error),) if error else (),
    )
    return RankFailure(rank=rank, role=Role.FAILED, words="", exit=evidence, last=last)


def cause_of(*ranks: RankFailure) -> str:
    return judged(ranks)[0]


def roles_of(*ranks: RankFailure) -> list[Role]:
    return [one.role for one in judged(ranks)[2]]


def test_se12_a_killed_rank_is_the_cause_though_its_peers_said_errors_first() -> None:
    ranks = (rank_with(0, error=CLOSED), rank_with(1, KILLED), rank_with(2, error=CLOSED))
    assert cause_of(*ranks) == "rank 1"
    assert roles_of(*ranks) == [Role.FAILED, Role.CAUSE, Role.FAILED]


def test_se12_two_killed_at_once_are_undetermined() -> None:
    ranks = (rank_with(0, KILLED), rank_with(1, KILLED), rank_with(2, error=CLOSED))
    cause, words, _ = judged(ranks)
    assert cause == "undetermined"
    assert "ranks 0, 1" in words
    assert Role.CAUSE not in roles_of(*ranks)


def test_se12_the_one_rank_that_said_an_error_is_the_cause_and_those_we_killed_are_collateral() -> None:
    ranks = (rank_with(0, KILLED, by_us=(15, 9)), rank_with(1, error="ValueError: bad batch"))
    assert cause_of(*ranks) == "rank 1"
    assert roles_of(*ranks) == [Role.COLLATERAL, Role.CAUSE]


def test_se12_two_that_said_errors_are_undetermined() -> None:
    assert cause_of(rank_with(0, error=CLOSED), rank_with(1, error=CLOSED)) == "undetermined"


def test_se12_an_exit_without_a_word_outweighs_an_error_and_an_abort_does_not() -> None:
    assert cause_of(rank_with(0, error=CLOSED), rank_with(1, Exited(3))) == "rank 1"
    assert cause_of(rank_with(0, error=CLOSED), rank_with(1, Signalled(signal.SIGABRT))) == "undetermined"
    assert cause_of(rank_with(0, Signalled(signal.SIGABRT)), rank_with(1, Signalled(signal.SIGSEGV))) == "rank 1"


def test_se12_an_exit_after_an_error_was_said_is_still_an_error() -> None:
    assert cause_of(rank_with(0, Exited(1), error=CLOSED), rank_with(1, KILLED)) == "rank 1"


def test_se12_one_rank_that_answers_no_more_is_the_cause_where_nothing_else_failed() -> None:
    silent = rank_with(1, finding="unresponsive: no heartbeat for 5 s")
    assert cause_of(rank_with(0, finding="stalled: no progress"), silent) == "rank 1"
    assert cause_of(rank_with(0, KILLED), silent) == "rank 0"
    assert cause_of(rank_with(0, finding="stalled: x"), rank_with(1, finding="stalled: x")) == "undetermined"


def test_se12_a_rank_that_was_told_to_end_and_exits_badly_is_collateral() -> None:
    ranks = (rank_with(0, Exited(143), by_us=(15,)), rank_with(1, KILLED))
    assert cause_of(*ranks) == "rank 1"
    assert roles_of(*ranks)[0] is Role.COLLATERAL


def test_se12_under_a_launcher_its_signals_are_no_cause_where_another_rank_failed() -> None:
    failed = rank_with(1, Exited(1), launcher=True)
    assert cause_of(rank_with(0, Signalled(signal.SIGTERM), launcher=True), failed) == "rank 1"
    assert roles_of(rank_with(0, Signalled(signal.SIGTERM), launcher=True), failed) == [Role.COLLATERAL, Role.CAUSE]
    assert cause_of(rank_with(0, KILLED, launcher=True), rank_with(1, launcher=True)) == "rank 0"


def test_se12_under_a_launcher_the_living_live_and_an_end_of_unknown_kind_is_a_failure() -> None:
    ranks = (rank_with(0, launcher=True), rank_with(1, launcher=True, closed=True))
    assert cause_of(*ranks) == "rank 1"
    assert roles_of(*ranks) == [Role.LIVES, Role.CAUSE]


def test_se12_a_cause_that_said_nothing_is_not_said_to_have_said_an_error() -> None:
    for dead, words in (
        (rank_with(0, None, launcher=True, closed=True), "rank 0 is gone, nothing here tells how, and no other rank"),
        (rank_with(0, Signalled(6)), "rank 0 aborted, and no other rank failed by itself"),
    ):
        cause, told, _ = judged((dead, rank_with(1, None)))
        assert (cause, told.startswith(words)) == ("rank 0", True)


def test_se12_a_rank_that_left_with_status_0_is_no_failure() -> None:
    assert cause_of(rank_with(0, Exited(0)), rank_with(1)) == "undetermined"
    assert roles_of(rank_with(0, Exited(0)), rank_with(1, KILLED)) == [Role.LEFT, Role.CAUSE]


@pytest.mark.parametrize(
    ("kills", "words"),
    [
        (None, "no counter tells"),
        (0, "not by the kernel for lack of memory"),
        (1, "counted 1 out-of-memory kill"),
    ],
)
def test_se12_lack_of_memory_is_told_from_another_sigkill_by_the_counter_alone(kills: int | None, words: str) -> None:
    said = exit_words(ExitEvidence(rank=0, pid=1, wait=KILLED, cgroup_oom_kills=kills))
    assert said.startswith("ended by SIGKILL, not sent by us")
    assert words in said


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (ExitEvidence(rank=0, pid=1, wait=Exited(137)), "exited with status 137"),
        (ExitEvidence(rank=0, pid=1, wait=Signalled(15), signals_by_us=(15,)), "ended by SIGTERM, sent by us"),
        (ExitEvidence(rank=0, pid=1, wait=Signalled(11)), "ended by SIGSEGV, not sent by us"),
        (ExitEvidence(rank=0, pid=1, wait=Signalled(63)), "ended by signal 63, not sent by us"),
        (ExitEvidence(rank=0, pid=1, wait=None), "alive"),
        (ExitEvidence(rank=0, pid=1, wait=None, signals_by_us=(9,), not_reaped=True), "not reaped"),
        (ExitEvidence(rank=0, pid=1, wait=None, words="node died"), "node died"),
        (ExitEvidence(rank=0, pid=1, wait=None, launcher_owned=True, line_closed=True), "is its launcher's"),
        (ExitEvidence(rank=0, pid=1, wait=None, line_closed=True), "its line is closed, and it has not ended"),
    ],
)
def test_se12_every_end_has_words(evidence: ExitEvidence, words: str) -> None:
    assert words in exit_words(evidence)
