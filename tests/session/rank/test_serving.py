"""A rank from its first word to its last, its coordinator played by hand (SE-2, SE-4, SE-6, SE-34)."""

from pathlib import Path

from paritrace.session.commands import Kind
from paritrace.session.messages import Beat, Ended, Halt, Joined, RoundName, Verdict
from paritrace.session.states import RankState
from tests.session.rank.lines import Played
from tests.session.rank.workloads import Counting

COUNTING = "tests.session.rank.workloads:Counting"


def test_se1_a_rank_joins_builds_runs_and_closes_all_on_one_thread(tmp_path: Path) -> None:
    played = Played(tmp_path, COUNTING)
    joined = played.line.first(Joined)
    assert (joined.rank, joined.world_size, joined.job_id, joined.token) == (0, 1, "job-1", "secret")
    assert played.built().state is RankState.IDLE
    heard = [type(message) for message in played.line.heard()]
    assert heard.index(Joined) == 0  # before the workload's module is imported
    assert heard.index(Beat) < heard.index(Ended)
    ended = played.run(3, at=0)
    assert (ended.state, ended.step, ended.epoch) == (RankState.IDLE, 3, 1)
    assert played.run(2, at=3).step == 5
    assert played.close() == 0
    workload = Counting.made[-1]
    assert workload.total == 5
    assert workload.calls == ["load", "build", "close"]
    assert len(workload.threads) == 1


def test_se6_a_stop_parks_the_rank_and_gives_up_the_rest_of_its_run(tmp_path: Path) -> None:
    played = Played(tmp_path, COUNTING, arguments={"hold_at": 4})
    played.built()
    played.begin_run(1000, at=0)
    workload = Counting.made[-1]
    assert workload.held.wait(30)
    played._number += 1
    reserved = played.round(Kind.STOP, RoundName.RESERVE).step
    assert reserved == 5
    workload.go_on.set()
    assert played.round(Kind.STOP, RoundName.PARK, step=reserved).step == 5
    assert played.round(Kind.STOP, RoundName.VOTE).verdict is Verdict.YES
    stopped = played.round(Kind.STOP, RoundName.ACT)
    assert stopped.verdict is Verdict.YES
    assert stopped.facts["drained"] is True
    assert [step for step, _ in workload.seen] == [0, 1, 2, 3, 4]
    assert played.run(2, at=5).step == 7
    assert played.close() == 0


def test_se7_a_step_that_raises_is_told_and_the_rank_still_closes_its_workload(tmp_path: Path) -> None:
    played = Played(tmp_path, COUNTING, arguments={"fail_at": 2})
    played.built()
    heard = played.line.num_heard
    played.begin_run(5, at=0)
    ended = played.line.first(Ended, after=heard)
    assert (ended.state, ended.step) == (RankState.ERROR, 2)
    (reason,) = ended.reasons
    assert reason.code == "step_raised"
    assert "step 2 cannot be taken" in reason.words
    assert "workloads.py:" in reason.words
    assert played.close() == 0
    assert Counting.made[-1].calls == ["load", "build", "close"]


def test_se34_a_fail_stop_closes_the_workload_and_ends_otherwise(tmp_path: Path) -> None:
    played = Played(tmp_path, COUNTING)
    played.built()
    played.line.say(Halt(1, "a rank is gone"))
    assert played.joined() == 1
    assert Counting.made[-1].calls == ["load", "build", "close"]


def test_se18_a_rank_whose_coordinator_is_gone_leaves(tmp_path: Path) -> None:
    played = Played(tmp_path, COUNTING)
    played.built()
    played.line.close()
    assert played.joined() == 1
    assert Counting.made[-1].calls == ["load", "build", "close"]


def test_se1_a_workload_that_is_none_is_told_with_all_that_it_lacks(tmp_path: Path) -> None:
    played = Played(tmp_path, "tests.session.rank.workloads:threading")
    ended = played.built()
    assert ended.state is RankState.ERROR
    assert "load, build, step, close" in ended.reasons[0].words
    assert played.close() == 0


def test_se1_capabilities_are_told_before_the_end_of_a_build(tmp_path: Path) -> None:
    played = Played(tmp_path, "tests.session.rank.workloads:Resident")
    played.built()
    messages = played.line.heard()
    before = messages[: next(i for i, message in enumerate(messages) if isinstance(message, Ended))]
    (told, *_) = [message.capabilities for message in before if isinstance(message, Beat) and message.capabilities]
    assert {"check", "config_fields", "plan_config", "save", "inspect", "prepare_inputs", "preview"} <= set(told)
    assert played.close() == 0


def test_se36_what_the_last_step_measured_is_told_before_the_end_of_its_run(tmp_path: Path) -> None:
    played = Played(tmp_path, COUNTING)
    played.built()
    heard = played.line.num_heard
    played.run(3, at=0)
    messages = played.line.heard()[heard:]
    before = messages[: next(i for i, message in enumerate(messages) if isinstance(message, Ended))]
    beats = [message for message in before if isinstance(message, Beat)]
    assert (beats[-1].state, beats[-1].step, beats[-1].metrics_step) == (RankState.IDLE, 3, 2)
    assert played.close() == 0


def test_se13_a_heartbeat_tells_of_the_work(tmp_path: Path) -> None:
    played = Played(tmp_path, COUNTING)
    played.built()
    played.run(3, at=0)
    beat = played.line.first(Beat, lambda beat: beat.step == 3 and beat.state is RankState.IDLE)
    assert beat.metrics == {"total": 3.0}
    assert beat.metrics_step == 2
    assert beat.inputs == {"gap": "not_told", "generation": 0}
    assert played.close() == 0
