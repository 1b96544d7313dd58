"""Restarts of several agents, and worlds that grow and shrink, open one incarnation each (CA-3)."""

from pathlib import Path

import pytest

from paritrace.errors import ParitraceError
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from tests.runs.making import another_process, request


def rank_of(
    agent: str, *, rank: int, local: int = 0, world: int = 2, ranks_here: int = 1, restart: int = 0
) -> dict[str, str]:
    """The environment that an agent gives one of its ranks."""
    return {
        "TORCHELASTIC_RUN_ID": "job-1",
        "TORCHELASTIC_RESTART_COUNT": str(restart),
        "TORCHELASTIC_ERROR_FILE": f"/tmp/torchelastic_x/job-1_{agent}/attempt_{restart}/{local}/error.json",
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(ranks_here),
        "WORLD_SIZE": str(world),
    }


def began(run_dir: Path, environ: dict[str, str]) -> str:
    """A process that is gone by now began a session there; returns its id."""
    return begin_session(run_dir, request(environ, process=another_process())).session_id


def refusal(run_dir: Path, environ: dict[str, str]) -> str:
    with pytest.raises(ParitraceError) as refused:
        began(run_dir, environ)
    return refused.value.code


def test_the_ranks_of_two_agents_join_one_incarnation(tmp_path: Path) -> None:
    run = tmp_path / "A"
    assert began(run, rank_of("b", rank=1)) == "rank-1"
    assert began(run, rank_of("a", rank=0)) == "rank-0"
    with open_run(run) as opened:
        assert [view.incarnation for view in opened.sessions] == [0, 0]
        assert opened.attendance[0].num_absent == 0


@pytest.mark.parametrize("failed_first", [True, False])
def test_a_failure_that_only_one_agent_counts_restarts_both(tmp_path: Path, failed_first: bool) -> None:
    run = tmp_path / "A"
    for agent, rank in (("a", 0), ("b", 1)):
        began(run, rank_of(agent, rank=rank))
    again = [rank_of("b", rank=1, restart=1), rank_of("a", rank=0)]
    joined = {began(run, environ) for environ in (again if failed_first else reversed(again))}
    assert joined == {"rank-0.restart-1", "rank-1.restart-1"}
    third = {began(run, environ) for environ in (rank_of("a", rank=0, restart=1), rank_of("b", rank=1, restart=1))}
    assert third == {"rank-0.restart-2", "rank-1.restart-2"}


def test_agents_may_change_their_places(tmp_path: Path) -> None:
    run = tmp_path / "A"
    for agent, rank in (("a", 0), ("b", 1)):
        began(run, rank_of(agent, rank=rank))
    assert began(run, rank_of("b", rank=0)) == "rank-0.restart-1"
    assert began(run, rank_of("a", rank=1)) == "rank-1.restart-1"


def test_a_world_that_shrinks_and_one_that_grows(tmp_path: Path) -> None:
    run = tmp_path / "A"
    for agent, rank in (("a", 0), ("b", 1)):
        began(run, rank_of(agent, rank=rank))
    assert began(run, rank_of("b", rank=0, world=1)) == "rank-0.restart-1", "one node went, and no agent counts that"
    assert began(run, rank_of("c", rank=1, world=2)) == "rank-1.restart-2", "another came"
    assert began(run, rank_of("b", rank=0, world=2)) == "rank-0.restart-2"
    with open_run(run) as opened:
        assert [(one.incarnation, one.world_sizes) for one in opened.attendance] == [(0, (2,)), (1, (1,)), (2, (2,))]
        assert not any(one.num_absent for one in opened.attendance)


def test_restarts_of_one_agent_are_those_it_counts(tmp_path: Path) -> None:
    run = tmp_path / "A"
    for restart in (0, 2):
        for rank in (0, 1):
            began(run, rank_of("a", rank=rank, local=rank, ranks_here=2, restart=restart))
    with open_run(run) as opened:
        assert [view.session_id for view in opened.sessions] == [
            "rank-0",
            "rank-1",
            "rank-0.restart-2",
            "rank-1.restart-2",
        ]
    assert refusal(run, rank_of("a", rank=0, ranks_here=2, restart=1)) == "stale_restart"


def test_a_second_capture_in_one_start_is_no_restart(tmp_path: Path) -> None:
    run = tmp_path / "A"
    alone = rank_of("a", rank=0, ranks_here=2)
    began(run, alone)
    assert refusal(run, alone) == "session_exists", "its agent would have counted a restart"
    assert refusal(run, rank_of("z", rank=0, ranks_here=2)) == "session_exists", "another start under one name"


def test_a_second_capture_beside_one_that_lives_is_no_restart(tmp_path: Path) -> None:
    run = tmp_path / "A"
    begin_session(run, request(rank_of("a", rank=0)))  # this process: alive
    assert refusal(run, rank_of("a", rank=0)) == "session_exists"
    with open_run(run) as opened:
        assert [view.status for view in opened.sessions] == [SessionStatus.RUNNING]
