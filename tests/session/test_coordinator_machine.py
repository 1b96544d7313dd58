"""The machine of the coordinator, one path at a time; `test_exploration` takes all (SE-4 to SE-9, SE-20, SE-29)."""

from typing import Any

import pytest

from paritrace.session.commands import Command, Fences, Kind, Reason, Result
from paritrace.session.coordinator_events import (
    Asked,
    Deny,
    FailStop,
    Keep,
    StartRanks,
    Survey,
    Surveyed,
    Withdrawn,
    Written,
)
from paritrace.session.coordinator_machine import view
from paritrace.session.coordinator_record import REMEMBERED, Phase
from paritrace.session.messages import Autosaved, Ended, RoundName, Verdict
from paritrace.session.rounds import ENDLESS
from paritrace.session.states import RankState
from tests.session.driving import Driven

RESERVE, PARK, PREPARE = RoundName.RESERVE, RoundName.PARK, RoundName.PREPARE
VOTE, ACT, PUBLISH = RoundName.VOTE, RoundName.ACT, RoundName.PUBLISH
ABORT, RELEASE, RESUME, CLOSE = RoundName.ABORT, RoundName.RELEASE, RoundName.RESUME, RoundName.CLOSE


def running(steps: int = 10) -> Driven:
    """Two ranks within a run to `steps`, under epoch 1."""
    driven = Driven().built()
    driven.ask("run", Kind.RUN, steps=steps)
    driven.all_answer(VOTE, ACT)
    return driven


def parked(kind: Kind, **body: str) -> Driven:
    """Two ranks that have parked at step 5 for a live command."""
    driven = running()
    driven.ask("live", kind, None, **body)
    driven.answer(0, step=5)
    driven.answer(1, step=4)
    driven.all_answer(PARK, step=5)
    return driven


def test_se5_a_run_is_voted_for_under_a_barrier_then_committed() -> None:
    driven = running()
    barrier = driven.told(VOTE)[0].barrier
    assert barrier is not None
    assert (barrier.epoch, barrier.kind, barrier.config_revision, barrier.pending) == (1, Kind.RUN, 0, 0)
    assert [(r.step, r.epoch) for r in driven.told(ACT)] == [(10, 1), (10, 1)]
    reply = driven.reply("run")
    assert (reply.result, reply.epoch, reply.step, reply.facts["target"]) == (Result.APPLIED, 1, 0, 10)


@pytest.mark.parametrize(
    ("config", "kept"),
    [({"settings": [{"name": "lr"}]}, {}), ({"values": {"lr": 1}}, {"config": {"values": {"lr": 1}}})],
)
def test_se26_a_reply_does_not_hold_the_configuration_that_its_revision_holds(
    config: dict[str, Any], kept: dict[str, Any]
) -> None:
    driven = Driven().built()
    driven.ask("c", Kind.CONFIGURE, values={"lr": 1})
    driven.all_answer(VOTE)
    driven.all_answer(ACT, config_revision=1, facts={"changed": ["lr"], "config": config})
    reply = driven.reply("c")
    assert (reply.result, reply.facts) == (Result.APPLIED, {"changed": ["lr"], **kept})


def test_se5_the_revision_is_asserted_only_where_all_ranks_reported_the_same() -> None:
    driven = Driven().built()
    driven.hear(Ended(3, 1, 0, RankState.IDLE, 0, config_revision=7))
    driven.ask("run", Kind.RUN, steps=1)
    barrier = driven.told(VOTE)[0].barrier
    assert barrier is not None
    assert barrier.config_revision is None


def test_se6_the_agreed_step_is_the_highest_that_was_reserved() -> None:
    driven = parked(Kind.STOP)
    assert {message.step for message in driven.told(PARK)} == {5}
    driven.all_answer(VOTE, ACT, step=5)
    reply = driven.reply("live")
    assert (reply.result, reply.step, reply.epoch) == (Result.APPLIED, 5, 2)
    assert driven.state.target is None
    assert not driven.told(RESUME)


def test_se6_the_rest_of_a_run_is_admitted_again_under_the_new_epoch() -> None:
    driven = parked(Kind.CONFIGURE)
    driven.all_answer(VOTE, step=5)
    driven.all_answer(ACT, step=5, config_revision=1)
    assert driven.reply("live").result is Result.APPLIED
    assert [(r.step, r.epoch) for r in driven.told(RESUME)] == [(10, 2), (10, 2)]
    driven.all_answer(RESUME, step=5)
    assert (driven.state.run_epoch, driven.state.config_revision, driven.state.running) == (2, 1, True)
    assert [r["event"] for r in driven.records("run")] == ["admitted", "parked", "resumed"]


def test_se29_commands_that_wait_are_all_done_before_the_next_step() -> None:
    driven = parked(Kind.CONFIGURE)
    driven.ask("save", Kind.SAVE, name="a")
    driven.all_answer(VOTE, step=5)
    driven.all_answer(ACT, step=5)
    assert not driven.told(RESUME)
    assert driven.round is VOTE
    assert driven.told(VOTE)[-1].command_id == "save"


def test_se7_all_reasons_of_all_ranks_refuse_and_nothing_has_changed() -> None:
    driven = parked(Kind.CONFIGURE)
    for rank in range(2):
        driven.answer(rank, Verdict.REFUSED, step=5)
    driven.all_answer(ABORT, step=5)
    reply = driven.reply("live")
    assert reply.result is Result.REFUSED
    assert [(reason.rank, reason.words) for reason in reply.reasons] == [(0, "rank 0 does not"), (1, "rank 1 does not")]
    assert driven.round is RESUME
    assert driven.state.epoch == 2


def test_se9_plans_that_differ_refuse() -> None:
    driven = parked(Kind.CONFIGURE)
    driven.answer(0, step=5, digest="a")
    driven.answer(1, step=5, digest="b")
    driven.all_answer(ABORT, step=5)
    assert {reason.code for reason in driven.reply("live").reasons} == {"digests_differ"}


def test_f07_steps_that_differ_are_not_applied() -> None:
    driven = Driven(world_size=4).built()
    driven.ask("load", Kind.LOAD, checkpoint="a")
    for rank, step in enumerate([100, 100, 90, 100]):
        driven.answer(rank, facts={"step": step})
    driven.all_answer(ABORT)
    reply = driven.reply("load")
    assert reply.result is Result.REFUSED
    assert reply.reasons[0].words == "steps differ {90: 1, 100: 3} (step: ranks): not applied"


def test_f08_digests_that_disagree_after_a_load_are_fatal() -> None:
    driven = Driven().built()
    driven.ask("load", Kind.LOAD, checkpoint="a")
    driven.all_answer(VOTE)
    driven.answer(0, digest="a", step=7, config_revision=1)
    driven.answer(1, digest="b", step=7, config_revision=1)
    reply = driven.reply("load")
    assert reply.result is Result.FAILED
    assert {reason.code for reason in reply.reasons} == {"digests_differ"}
    assert driven.state.phase is Phase.ERROR


def test_se7_a_change_on_some_ranks_only_is_failed_not_refused() -> None:
    driven = parked(Kind.CONFIGURE)
    driven.all_answer(VOTE, step=5)
    driven.answer(0, step=5, config_revision=1)
    driven.answer(1, Verdict.REFUSED, step=5)
    assert driven.reply("live").result is Result.FAILED


def test_se8_the_manifest_comes_last_and_a_save_without_it_is_refused() -> None:
    driven = parked(Kind.SAVE, name="a")
    driven.all_answer(VOTE, step=5)
    driven.answer(0, step=5, facts={"files": {"a": 1}})
    assert not [action for action in driven.actions if isinstance(action, Keep)]
    driven.answer(1, step=5, facts={"files": {"b": 2}})
    (keep,) = [action for action in driven.actions if isinstance(action, Keep)]
    assert keep.facts["ranks"] == [{"files": {"a": 1}}, {"files": {"b": 2}}]
    assert keep.facts["step"] == 5
    driven.do(Written("live", ok=False, words="disk full"))
    driven.all_answer(ABORT, step=5)
    reply = driven.reply("live")
    assert (reply.result, reply.reasons[0].words) == (Result.REFUSED, "disk full")
    assert driven.round is RESUME


def test_se11_a_status_that_is_read_after_a_reply_shows_no_state_of_before_it() -> None:
    driven = Driven().built()
    driven.ask("save", Kind.SAVE, name="a")
    driven.all_answer(VOTE)
    for rank in range(2):
        driven.beat(rank, RankState.SAVING, epoch=1)
    driven.all_answer(ACT, state=RankState.IDLE, facts={"files": {}})
    driven.do(Written("save", ok=True))
    assert driven.reply("save").result is Result.APPLIED
    job = view(driven.state)
    assert (job.state, job.agreed) == (RankState.IDLE, True)


def test_se9_inputs_are_prepared_while_steps_go_on_and_published_when_parked() -> None:
    driven = running()
    driven.ask("live", Kind.INPUTS, reference={})
    driven.all_answer(PREPARE, digest="d")
    driven.answer(0, step=5)
    driven.answer(1, step=6)
    driven.all_answer(PARK, step=6)
    driven.all_answer(VOTE, ACT, PUBLISH, step=6, digest="d")
    assert (driven.state.inputs_digest, driven.state.inputs_generation) == ("d", 1)
    assert driven.records("inputs") == [{"digest": "d", "generation": 1, "step": 6, "id": "live"}]


@pytest.mark.parametrize(
    ("fence", "given_up"), [(None, True), (Fences(generation=3), True), (Fences(generation=9), False)]
)
def test_se29_a_close_does_not_wait_for_inputs_that_are_being_prepared(fence: Fences | None, given_up: bool) -> None:
    driven = running()
    driven.ask("live", Kind.INPUTS, reference={})
    driven.answer(0, digest="d")  # the other rank's preparation hangs
    driven.ask("more", Kind.INPUTS, reference={})
    driven.ask("end", Kind.CLOSE, fence)
    if not given_up:
        assert driven.round is PREPARE
        return
    driven.all_answer(RELEASE)
    driven.all_answer(RELEASE)
    for name in ("live", "more"):
        assert (driven.reply(name).result, driven.reply(name).reasons[0].code) == (Result.CANCELLED, "closing")
    driven.all_answer(RESERVE, PARK, step=5)
    assert driven.round is CLOSE


def test_se9_configure_waits_for_its_inputs_while_steps_go_on_as_long_as_inputs_may_take() -> None:
    driven = running()
    driven.ask("live", Kind.CONFIGURE, values={"lr": 1.0}, inputs={"text": "second"})
    assert driven.round is PREPARE
    assert driven.timers()["round"] == driven.state.bounds["prepare_inputs"]
    assert driven.state.running
    driven.all_answer(PREPARE, digest="d")
    driven.answer(0, step=5)
    driven.answer(1, step=6)
    driven.all_answer(PARK, step=6)
    driven.all_answer(VOTE, step=6, digest="plan")
    driven.all_answer(ACT, step=6, config_revision=1, digest=None, facts={"inputs": {"digest": "d"}})
    assert (driven.reply("live").result, driven.state.inputs_digest) == (Result.APPLIED, "d")
    assert driven.round is RESUME


def test_se6_a_parked_run_goes_on_before_inputs_of_the_next_command_are_prepared() -> None:
    driven = running()
    driven.ask("first", Kind.PREVIEW)
    driven.ask("second", Kind.INPUTS, reference={})
    driven.all_answer(RESERVE, PARK, VOTE, ACT, step=5)
    assert driven.reply("first").result is Result.APPLIED
    driven.all_answer(RESUME, step=5)
    assert (driven.round, driven.state.running) == (PREPARE, True)


def test_se21_inputs_of_a_configure_that_are_not_prepared_in_time_change_nothing() -> None:
    driven = running()
    driven.ask("live", Kind.CONFIGURE, inputs={"text": "second"})
    driven.answer(0, digest="d")
    driven.elapse("round")
    driven.all_answer(RELEASE)
    assert driven.reply("live").reasons[0].code == "not_answered"
    assert (driven.state.epoch, driven.state.running) == (1, True)


@pytest.mark.parametrize("asked", [(Kind.INPUTS, {"reference": {}}), (Kind.CONFIGURE, {"inputs": {}})])
def test_se9_ranks_that_prepared_different_sets_refuse_and_steps_go_on(asked: tuple[Kind, dict[str, Any]]) -> None:
    driven = running()
    driven.ask("live", asked[0], **asked[1])
    driven.answer(0, digest="a")
    driven.answer(1, digest="b")
    driven.all_answer(RELEASE)
    assert driven.reply("live").result is Result.REFUSED
    assert (driven.state.epoch, driven.state.running) == (1, True)


def test_se32_a_preview_is_told_of_by_the_ranks_that_made_one_and_refused_where_none_offers_it() -> None:
    driven = Driven().built()
    driven.ask("second", Kind.PREVIEW, rank=1)
    driven.answer(0, facts={"offers": False})
    driven.answer(1, facts={"offers": True})
    driven.answer(0)
    made = {"rank": 1, "path": "previews/rank-1/1"}
    driven.answer(1, facts=made)
    assert driven.reply("second").facts == {**made, "previews": [made]}
    driven.ask("none", Kind.PREVIEW)
    driven.all_answer(VOTE, facts={"offers": False})
    driven.all_answer(ABORT)
    assert (driven.reply("none").result, driven.reply("none").reasons[0].code) == (Result.REFUSED, "no_preview")


def test_se10_autosaves_stand_in_the_journal_with_their_outcome() -> None:
    driven = running()
    facts = {"name": "autosave/x", "digest": "d", "content": "c", "state_digests": {"0": None}}
    driven.hear(Autosaved(3, 1, 1, 4, 0.25, facts))
    driven.hear(Autosaved(3, 0, 1, 8, 0.5, words="disk full"))
    driven.hear(Autosaved(2, 0, 1, 8, 0.5, words="of another generation"))
    assert driven.records("checkpoint") == [
        {"event": "autosaved", "step": 4, "seconds": 0.25, **facts},
        {"event": "autosave_failed", "step": 8, "seconds": 0.5, "rank": 0, "words": "disk full"},
    ]


@pytest.mark.parametrize("kind", [Kind.RUN, Kind.LOAD, Kind.REBUILD])
def test_se5_quiescent_kinds_are_refused_while_steps_are_pending(kind: Kind) -> None:
    driven = running()
    driven.ask("other", kind, steps=1)
    assert driven.reply("other").reasons[0].code == "running"
    assert driven.state.running


def test_se4_a_fence_that_does_not_hold_cancels_and_names_both_values() -> None:
    driven = Driven().built()
    driven.ask("run", Kind.RUN, Fences(generation=2, step=4, config_revision=9), steps=1)
    reply = driven.reply("run")
    assert reply.result is Result.CANCELLED
    assert [reason.words for reason in reply.reasons] == [
        "expected generation 2, it is 3",
        "expected config_revision 9, it is 0",
        "expected step 4, it is 0",
    ]


def test_se4_a_step_that_was_passed_cancels_once_the_ranks_have_parked() -> None:
    driven = running()
    driven.ask("live", Kind.STOP, Fences(step=3))
    driven.all_answer(RESERVE, PARK, step=5)
    driven.all_answer(RELEASE, step=5)
    reply = driven.reply("live")
    assert (reply.result, reply.reasons[0].words) == (Result.CANCELLED, "expected step 3, the ranks are at 5")
    assert (driven.state.epoch, driven.state.running) == (1, True)


def test_se4_a_wrong_epoch_is_a_fail_stop() -> None:
    driven = Driven().built()
    driven.ask("run", Kind.RUN, steps=1)
    actions = driven.answer(0, Verdict.VIOLATION)
    assert [action.code for action in actions if isinstance(action, FailStop)] == ["barrier"]
    assert driven.reply("run").result is Result.FAILED


def test_se7_the_same_id_returns_the_first_result_and_other_content_is_an_error() -> None:
    driven = running()
    first = driven.reply("run")
    assert driven.do(Asked(Command("run", Kind.RUN, {"steps": 10}, timeout_seconds=3.0)))[-1].reply == first  # type: ignore[union-attr]
    (denied,) = [a for a in driven.do(Asked(Command("run", Kind.RUN, {"steps": 11}))) if isinstance(a, Deny)]
    assert denied.reason.code == "id_reused"


def test_se29_what_is_queued_is_withdrawn_and_what_is_under_way_is_unknown_until_it_ends() -> None:
    driven = running()
    driven.ask("first", Kind.STOP)
    driven.ask("second", Kind.STOP)
    driven.do(Withdrawn("second"))
    assert driven.reply("second").result is Result.CANCELLED
    driven.do(Withdrawn("first"))
    assert driven.reply("first").result is Result.UNKNOWN
    driven.all_answer(RESERVE, PARK, VOTE, ACT, step=5)
    assert driven.reply("first").result is Result.APPLIED


@pytest.mark.parametrize(
    ("names", "after", "result"),
    [((), RELEASE, Result.REFUSED), ((RESERVE,), RELEASE, Result.REFUSED), ((RESERVE, PARK), ABORT, Result.REFUSED)],
)
def test_se21_silence_before_the_act_aborts_and_changes_nothing(
    names: tuple[RoundName, ...], after: RoundName, result: Result
) -> None:
    driven = running()
    driven.ask("live", Kind.CONFIGURE)
    driven.all_answer(*names, step=5)
    driven.answer(0, step=5)
    driven.elapse("round")
    driven.all_answer(after, step=5)
    reply = driven.reply("live")
    assert reply.result is result
    assert [(reason.rank, reason.code) for reason in reply.reasons] == [(1, "not_answered")]
    assert driven.state.phase is Phase.READY


def test_se21_an_act_that_is_not_acknowledged_ends_in_a_fail_stop() -> None:
    driven = parked(Kind.CONFIGURE)
    driven.all_answer(VOTE, step=5)
    driven.elapse("round")
    assert driven.reply("live").result is Result.FAILED
    assert driven.state.phase is Phase.ERROR


def test_se21_no_wait_of_the_machine_is_without_a_timer() -> None:
    driven = running()
    driven.ask("live", Kind.INPUTS, reference={})
    for name in (PREPARE, RESERVE, PARK, VOTE, ACT, PUBLISH):
        assert driven.round is name
        assert driven.timers()["round"] > 0
        driven.all_answer(name, step=5)
    assert driven.timers()["round"] == 10.0  # RESUME
    driven.all_answer(RESUME, step=5)
    assert "round" not in driven.timers()


def test_se20_a_death_fails_what_is_under_way_cancels_what_waits_and_only_recovery_goes_on() -> None:
    driven = running()
    driven.ask("live", Kind.STOP)
    driven.ask("waits", Kind.SAVE)
    driven.gone(1)
    assert driven.reply("live").result is Result.FAILED
    assert driven.reply("waits").result is Result.CANCELLED
    driven.ask("more", Kind.RUN, steps=1)
    assert driven.reply("more").reasons[0].code == "session_in_error"
    driven.ask("again", Kind.REBUILD)
    assert len([action for action in driven.actions if isinstance(action, StartRanks)]) == 1  # rank 0 is not gone yet
    driven.gone(0)
    assert [a.generation for a in driven.actions if isinstance(a, StartRanks)] == [3, 4]
    driven.built()
    assert driven.reply("again").result is Result.APPLIED
    assert (driven.state.generation, driven.state.epoch) == (4, 0)


def test_se20_commands_of_an_old_generation_are_cancelled() -> None:
    driven = running()
    driven.gone(0)
    driven.gone(1)
    driven.ask("again", Kind.REBUILD)
    driven.built()
    driven.ask("old", Kind.RUN, Fences(generation=3), steps=1)
    assert driven.reply("old").result is Result.CANCELLED


def test_f18_a_stale_participant_is_not_taken_in_and_is_written_down() -> None:
    driven = Driven()
    driven.hear(driven.joined(0, generation=2))
    assert driven.state.ranks[0].joined is None
    assert driven.records("generation")[-1] == {"event": "stale_participant", "generation": 2, "rank": 0}


def test_se20_close_parks_a_run_then_closes_and_cancels_what_waits() -> None:
    driven = running()
    driven.ask("close", Kind.CLOSE)
    driven.ask("late", Kind.SAVE)
    driven.all_answer(RESERVE, PARK, step=5)
    driven.all_answer(CLOSE, step=5)
    assert driven.reply("late").result is Result.CANCELLED
    driven.gone(0)
    assert driven.state.phase is Phase.CLOSING
    driven.gone(1)
    assert driven.reply("close").result is Result.APPLIED
    assert driven.state.over


def test_f18_a_close_waits_for_nobody_who_never_dialled_in() -> None:
    driven = Driven(stops_ranks=False)
    driven.ask("close", Kind.CLOSE)
    assert driven.reply("close").result is Result.APPLIED
    assert driven.state.over
    half = Driven(stops_ranks=False)
    half.hear(half.joined(0))
    half.ask("close", Kind.CLOSE)
    assert not half.state.over
    half.hear(half.joined(1))  # too late: it is not told anything, and trains on
    half.answer(0)
    half.gone(0)
    assert (half.reply("close").result, half.state.over) == (Result.APPLIED, True)
    ours = Driven()  # processes of our own may still be importing: they are told, and ended past the bound
    ours.ask("close", Kind.CLOSE)
    assert ours.timers()["round"] == ours.state.bounds["close"]
    assert not ours.state.over


def test_se21_a_close_that_hangs_kills_and_does_not_wait_for_what_is_not_reaped() -> None:
    driven = Driven().built()
    driven.ask("close", Kind.CLOSE)
    assert [a.code for a in driven.elapse("round") if isinstance(a, FailStop)] == ["not_closed"]
    driven.gone(0)
    driven.elapse("gone")
    assert driven.state.over
    assert driven.reply("close").notes == ("rank 1 was not reaped in time",)


def test_se21_ranks_that_do_not_join_or_build_in_time_end_the_generation() -> None:
    for timer in ("join", "start"):
        driven = Driven()
        assert timer in driven.timers()
        driven.elapse(timer)
        assert driven.state.phase is Phase.ERROR


def test_se16_under_attach_ranks_are_waited_for_from_the_first_on_and_run_already() -> None:
    driven = Driven(stops_ranks=False)
    assert "join" not in driven.timers()
    driven.hear(driven.joined(0))
    assert "join" in driven.timers()
    driven.hear(driven.joined(1))
    for rank in range(2):
        driven.end(rank, step=0, state=RankState.RUNNING)
    assert (driven.state.phase, driven.state.target) == (Phase.READY, ENDLESS)
    assert [(one["event"], one["step"]) for one in driven.records("run")] == [("admitted", 0)]


def test_se16_under_attach_a_failure_disables_control_and_says_so() -> None:
    driven = Driven(stops_ranks=False).built()
    driven.gone(1)
    assert driven.state.control == "disabled: rank 1: killed by signal 9"
    driven.ask("again", Kind.REBUILD)
    assert driven.reply("again").reasons[0].code == "launcher_owned"


def test_se13_heartbeats_tell_of_ends_too_should_the_word_of_one_be_lost() -> None:
    driven = running()
    for rank in range(2):
        driven.beat(rank, RankState.IDLE, step=10)
    assert (driven.state.target, driven.state.step) == (None, 10)
    driven.beat(1, RankState.ERROR)
    assert driven.state.phase is Phase.ERROR


def test_se6_a_rank_that_ends_its_run_before_another_was_released_has_ended_it() -> None:
    driven = running()
    driven.ask("live", Kind.STOP, Fences(step=3))
    driven.all_answer(RESERVE, PARK, step=5)
    driven.answer(1, step=5)
    driven.end(1, step=10)
    driven.answer(0, step=5)
    driven.end(0, step=10)
    assert (driven.state.target, driven.state.step) == (None, 10)


@pytest.mark.parametrize(
    ("rounds", "result"),
    [((), Result.CANCELLED), ((RESERVE, PARK), Result.CANCELLED), ((RESERVE, PARK, VOTE), Result.FAILED)],
)
def test_se21_a_close_at_once_overtakes_what_is_under_way_and_asks_no_rank(
    rounds: tuple[RoundName, ...], result: Result
) -> None:
    driven = running()
    driven.ask("live", Kind.SAVE)
    driven.ask("waits", Kind.SAVE)
    driven.all_answer(*rounds, step=5)
    driven.ask("close", Kind.CLOSE, now=True)
    assert driven.reply("live").result is result
    assert driven.reply("waits").result is Result.CANCELLED
    assert [action.code for action in driven.actions if isinstance(action, FailStop)] == ["closed_at_once"]
    assert driven.told(CLOSE) == []
    assert driven.records("generation")[-1]["event"] == "ended_at_once"
    assert driven.timers() == {"gone": 4.0}
    driven.gone(0)
    driven.gone(1)
    reply = driven.reply("close")
    assert (reply.result, driven.state.over) == (Result.APPLIED, True)
    assert reply.notes == ("ended without waiting: ranks 0, 1; failures/3.json says what each was at",)
    assert driven.timers() == {}


def test_se21_a_close_at_once_overtakes_a_close_that_waits_for_a_stuck_rank_and_both_are_told() -> None:
    driven = running()
    driven.ask("patient", Kind.CLOSE)
    driven.answer(0, step=5)
    driven.ask("held", Kind.CLOSE, Fences(generation=2), now=True)
    assert driven.reply("held").reasons[0].code == "fence_generation"
    driven.ask("held-too", Kind.CLOSE, Fences(step=4), now=True)
    assert driven.reply("held-too").reasons[0].words == "expected step 4, it is 0"
    driven.ask("close", Kind.CLOSE, now=True)
    driven.ask("again", Kind.CLOSE, now=True)
    driven.gone(0)
    driven.elapse("gone")
    assert {driven.reply(name).result for name in ("patient", "close", "again")} == {Result.APPLIED}
    assert "rank 1 was not reaped in time" in driven.reply("close").notes
    assert driven.state.over


@pytest.mark.parametrize("now", [False, True])
def test_se20_a_close_does_not_wait_for_a_new_generation_that_does_not_come_up(now: bool) -> None:
    driven = running()
    driven.gone(0)
    driven.gone(1)
    driven.ask("again", Kind.REBUILD)
    driven.ask("close", Kind.CLOSE, now=now)
    assert driven.reply("again").result is Result.CANCELLED
    assert (driven.state.generation, driven.state.phase) == (4, Phase.CLOSING)
    driven.elapse("gone" if now else "round")
    driven.elapse("gone")
    assert driven.reply("close").result is Result.APPLIED


def test_se16_under_attach_a_close_at_once_gives_up_control_and_waits_for_no_rank_that_is_stopped() -> None:
    driven = Driven(stops_ranks=False)
    driven.hear(driven.joined(0))
    driven.ask("close", Kind.CLOSE, now=True)
    assert driven.state.phase is Phase.CLOSING
    driven.elapse("gone")
    assert driven.reply("close").notes == (
        "control was given up: rank 0; failures/3.json says what each was at",
        "rank 0 has not answered, and trains on",
    )


@pytest.mark.parametrize("reasons", [(), (Reason(-1, "not_a_checkpoint", "there is nothing of this name"),)])
def test_se7_a_load_out_of_an_error_is_refused_before_a_generation_is_begun_for_it(reasons: tuple[Reason, ...]) -> None:
    driven = running()
    driven.gone(0)
    driven.gone(1)
    driven.ask("again", Kind.LOAD, checkpoint="here", rebuild=True)
    assert [one for one in driven.actions if isinstance(one, Survey)] == [Survey("again", "here")]
    driven.ask("waits", Kind.REBUILD)
    assert driven.state.generation == 3
    driven.do(Surveyed("another", (Reason(-1, "x", "of a command before"),)))
    driven.do(Surveyed("again", reasons))
    if reasons:
        assert (driven.reply("again").result, driven.reply("again").reasons) == (Result.REFUSED, reasons)
    driven.do(Surveyed("again", reasons))  # late: of nothing that waits
    starts = [one.body for one in driven.actions if isinstance(one, StartRanks)][1:]
    assert starts == [{} if reasons else {"checkpoint": "here", "rebuild": True}]
    assert (driven.state.generation, driven.state.phase) == (4, Phase.STARTING)


def test_se21_a_checkpoint_that_is_not_read_through_in_time_is_refused_and_a_close_does_not_wait_for_it() -> None:
    for ask in (True, False):
        driven = running()
        driven.gone(0)
        driven.gone(1)
        driven.ask("again", Kind.LOAD, checkpoint="here", rebuild=True)
        assert driven.timers()["survey"] == driven.state.bounds["inspect"]
        if ask:
            driven.ask("close", Kind.CLOSE)
            assert (driven.reply("again").result, driven.state.over) == (Result.CANCELLED, True)
            driven.do(Surveyed("again"))
            assert driven.state.over
        else:
            driven.elapse("survey")
            assert driven.reply("again").reasons[0].code == "not_surveyed"
            assert driven.state.phase is Phase.ERROR


def test_se7_as_many_replies_are_held_as_are_remembered_and_what_waits_is_never_forgotten() -> None:
    driven = running()
    driven.ask("waits", Kind.SAVE)
    for number in range(REMEMBERED + 10):
        driven.ask(str(number), Kind.RUN, Fences(generation=1), steps=1)
        driven.do(Withdrawn(str(number)))
    assert len(driven.state.replies) == REMEMBERED
    assert set(driven.state.asked) == {*driven.state.replies, "waits"}
