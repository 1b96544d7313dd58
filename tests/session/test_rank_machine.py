"""The machine of a rank, one path at a time; `test_exploration` takes all (SE-3 to SE-9, SE-30)."""

from typing import Any

import pytest

from paritrace.session import rank_machine
from paritrace.session.barrier import Barrier
from paritrace.session.commands import Kind, Reason
from paritrace.session.messages import Answer, Ended, Halt, Round, RoundName, Verdict
from paritrace.session.rank_events import (
    Broke,
    Built,
    Cut,
    Do,
    Done,
    Finished,
    Leave,
    Limit,
    RankAction,
    RankEvent,
    Received,
    RunUntil,
    Send,
    Stepped,
)
from paritrace.session.rank_record import Rank
from paritrace.session.rank_rounds import NEEDS
from paritrace.session.rounds import ENDLESS
from paritrace.session.states import RankState

RESERVE, PARK, PREPARE = RoundName.RESERVE, RoundName.PARK, RoundName.PREPARE
VOTE, ACT, PUBLISH = RoundName.VOTE, RoundName.ACT, RoundName.PUBLISH
ABORT, RELEASE, RESUME, CLOSE = RoundName.ABORT, RoundName.RELEASE, RoundName.RESUME, RoundName.CLOSE
INJECTED = (Reason(1, "injected", "injected"),)


class Driven:
    """Rank 1 of two, and what it has asked its shell to do by the last event."""

    def __init__(self, capabilities: tuple[str, ...] = tuple(NEEDS.values())) -> None:
        self.rank: Rank = rank_machine.began(rank=1, world_size=2, generation=3, capabilities=capabilities)
        self.actions: tuple[RankAction, ...] = ()
        self.epoch = 0

    def do(self, event: RankEvent) -> "Driven":
        self.rank, self.actions = rank_machine.step(self.rank, event)
        return self

    def hear(self, name: RoundName, command_id: str, kind: Kind, *, step: int = 0, **more: Any) -> "Driven":
        """A round comes; it bears the barrier that fits where it is a vote and nothing else is said."""
        epoch = more.pop("epoch", self.epoch)
        if name is VOTE:
            more.setdefault("barrier", Barrier(epoch, kind))
        message = Round(more.pop("generation", 3), command_id, kind, epoch, name, step=more.pop("told", None), **more)
        return self.do(Received(message, step))

    def done(self, command_id: str, name: RoundName, *, ok: bool = True, **more: Any) -> "Driven":
        return self.do(Done(command_id, name, ok, **more))

    @property
    def answer(self) -> Answer:
        (message,) = [action.message for action in self.actions if isinstance(action, Send)]
        assert isinstance(message, Answer)
        return message

    @property
    def ended(self) -> Ended:
        (message,) = [action.message for action in self.actions if isinstance(action, Send)]
        assert isinstance(message, Ended)
        return message


def idle() -> Driven:
    return Driven().do(Built(0, 0))


def running(target: int = 10) -> Driven:
    driven = idle()
    driven.epoch = 1
    driven.hear(VOTE, "run", Kind.RUN).done("run", VOTE)
    return driven.hear(ACT, "run", Kind.RUN, told=target)


def parked(kind: Kind) -> Driven:
    """Parked at step 5 for a command that has reserved it."""
    driven = running()
    driven.epoch = 2
    return driven.hear(RESERVE, "live", kind, step=5).do(Stepped(5)).hear(PARK, "live", kind, step=5, told=5)


def voted(kind: Kind) -> Driven:
    return parked(kind).hear(VOTE, "live", kind).done("live", VOTE)


def test_se3_a_built_rank_is_idle_and_says_so() -> None:
    driven = Driven().do(Built(4, 2, facts={"a": 1}))
    assert (driven.ended.state, driven.ended.step, driven.ended.config_revision) == (RankState.IDLE, 4, 2)
    assert driven.ended.facts == {"a": 1}


def test_se5_the_epoch_advances_at_delivery_before_anything_is_done() -> None:
    driven = idle()
    driven.hear(VOTE, "run", Kind.RUN, epoch=1)
    assert driven.rank.epoch == 1
    assert driven.actions == (Do("run", Kind.RUN, VOTE, {}),)


def test_se4_a_run_is_stepped_under_the_epoch_and_revision_it_was_admitted_under() -> None:
    driven = running()
    assert RunUntil(10, 1, 0) in driven.actions
    assert (driven.rank.state, driven.rank.pending) == (RankState.RUNNING, 10)


def test_se6_a_reservation_stops_at_the_first_step_that_has_not_begun() -> None:
    driven = running()
    driven.hear(RESERVE, "live", Kind.STOP, step=4, epoch=2)
    assert driven.actions[0] == Limit(4)
    assert (driven.answer.step, driven.answer.verdict, driven.rank.epoch) == (4, Verdict.YES, 1)


def test_se6_park_is_answered_at_the_agreed_step_and_not_before() -> None:
    driven = running()
    driven.hear(RESERVE, "live", Kind.STOP, step=4, epoch=2).do(Stepped(4))
    driven.hear(PARK, "live", Kind.STOP, step=4, told=6, epoch=2)
    assert driven.actions == (Limit(6),)
    driven.do(Stepped(6))
    assert (driven.answer.name, driven.answer.step, driven.rank.state) == (PARK, 6, RankState.IDLE)


def test_se6_a_rank_whose_run_ended_meanwhile_parks_at_its_target() -> None:
    driven = running(target=3)
    driven.do(Stepped(3))
    assert driven.ended.step == 3
    driven.hear(RESERVE, "live", Kind.STOP, step=3, epoch=2)
    assert driven.answer.step == 3
    driven.hear(PARK, "live", Kind.STOP, step=3, told=3, epoch=2)
    assert driven.answer.verdict is Verdict.YES
    driven.hear(PARK, "other", Kind.STOP, step=3, told=4, epoch=2)
    assert driven.answer.reasons[0].code == "step_passed"


def test_se6_a_released_rank_goes_on_under_the_old_epoch() -> None:
    driven = parked(Kind.CONFIGURE)
    driven.hear(RELEASE, "live", Kind.CONFIGURE)
    assert RunUntil(10, 1, 0) in driven.actions
    assert (driven.rank.state, driven.rank.epoch) == (RankState.RUNNING, 1)


def test_se6_a_released_reservation_is_lifted_where_nothing_has_parked() -> None:
    driven = running()
    driven.hear(RESERVE, "live", Kind.STOP, step=4, epoch=2).hear(RELEASE, "live", Kind.STOP, step=4, epoch=2)
    assert driven.actions[0] == Limit(10)


def test_se6_the_rest_of_a_run_is_resumed_under_the_new_epoch_and_revision() -> None:
    driven = voted(Kind.CONFIGURE).hear(ACT, "live", Kind.CONFIGURE).done("live", ACT)
    assert driven.answer.config_revision == 1
    driven.hear(RESUME, "live", Kind.CONFIGURE, told=10)
    assert RunUntil(10, 2, 1) in driven.actions


def test_se6_stop_gives_up_the_rest() -> None:
    driven = parked(Kind.STOP).hear(VOTE, "live", Kind.STOP).hear(ACT, "live", Kind.STOP).done("live", ACT)
    assert (driven.rank.pending, driven.rank.target, driven.rank.state) == (0, None, RankState.IDLE)


@pytest.mark.parametrize(
    ("kind", "at_vote", "at_act", "after"),
    [
        (Kind.CONFIGURE, RankState.IDLE, RankState.IDLE, RankState.IDLE),
        (Kind.SAVE, RankState.IDLE, RankState.SAVING, RankState.IDLE),
        (Kind.PREVIEW, RankState.IDLE, RankState.EXPORTING_PREVIEW, RankState.IDLE),
        (Kind.INPUTS, RankState.IDLE, RankState.LOADING, RankState.LOADING),
        (Kind.CAPTURE, RankState.IDLE, RankState.IDLE, RankState.IDLE),
        (Kind.LOAD, RankState.LOADING, RankState.LOADING, RankState.IDLE),
        (Kind.REBUILD, RankState.LOADING, RankState.LOADING, RankState.IDLE),
    ],
)
def test_se30_the_state_of_each_phase(kind: Kind, at_vote: RankState, at_act: RankState, after: RankState) -> None:
    driven = idle()
    driven.epoch = 1
    assert driven.hear(VOTE, "a", kind).rank.state is at_vote
    driven.done("a", VOTE)
    assert driven.hear(ACT, "a", kind).rank.state is at_act
    assert driven.done("a", ACT).rank.state is after
    assert driven.answer.state is after
    if kind is Kind.INPUTS:
        driven.hear(PUBLISH, "a", kind).done("a", PUBLISH)
        assert (driven.rank.state, driven.answer.name) == (RankState.IDLE, PUBLISH)


def test_se34_a_rank_that_is_closed_while_it_steps_begins_no_other_step() -> None:
    driven = running()
    driven.hear(CLOSE, "close", Kind.CLOSE, step=4, epoch=2)
    assert driven.actions[0] == Limit(4)
    assert Do("close", Kind.CLOSE, CLOSE, {}) in driven.actions


@pytest.mark.parametrize("kind", [Kind.CONFIGURE, Kind.REBUILD])
def test_se9_inputs_that_come_with_values_are_prepared_first_and_put_in_while_loading(kind: Kind) -> None:
    driven = running() if kind is Kind.CONFIGURE else idle()
    driven.epoch += 1
    with_inputs = {"inputs": {"text": "second"}}
    driven.hear(PREPARE, "live", kind, body=with_inputs)
    assert driven.actions == (Do("live", kind, PREPARE, with_inputs),)
    assert [driven.rank.state] == [RankState.RUNNING if kind is Kind.CONFIGURE else RankState.IDLE]
    driven.done("live", PREPARE)
    if kind is Kind.CONFIGURE:
        driven.hear(RESERVE, "live", kind, step=5).do(Stepped(5)).hear(PARK, "live", kind, step=5, told=5)
    driven.hear(VOTE, "live", kind, body=with_inputs).done("live", VOTE).hear(ACT, "live", kind, body=with_inputs)
    assert driven.rank.state is RankState.LOADING
    assert driven.done("live", ACT).rank.state is RankState.IDLE


def test_se9_values_with_inputs_need_both_capabilities_before_anything_is_prepared() -> None:
    driven = Driven(capabilities=("plan_config",)).do(Built(0, 0))
    driven.hear(PREPARE, "a", Kind.CONFIGURE, epoch=1, body={"inputs": {}})
    assert driven.answer.reasons[0].words.startswith("the workload has no prepare_inputs: a class has")
    driven = Driven(capabilities=()).do(Built(0, 0)).hear(PREPARE, "a", Kind.CONFIGURE, epoch=1, body={"inputs": {}})
    words = driven.answer.reasons[0].words
    assert words.startswith("the workload has no plan_config and no prepare_inputs: a class has plan_config and")
    assert "a loop, `config` and `configure` of steps; a class has prepare_inputs" in words


@pytest.mark.parametrize("kind", list(NEEDS))
def test_se1_what_the_workload_cannot_is_refused_by_name(kind: Kind) -> None:
    driven = Driven(capabilities=()).do(Built(0, 0))
    driven.hear(PREPARE if kind is Kind.INPUTS else VOTE, "a", kind, epoch=1)
    assert driven.answer.reasons[0].code == "not_capable"
    assert NEEDS[kind] in driven.answer.reasons[0].words


def test_se7_a_fault_before_anything_was_released_is_a_refusal_and_after_it_fatal() -> None:
    refused = voted(Kind.CONFIGURE).hear(ACT, "live", Kind.CONFIGURE).done("live", ACT, ok=False, reasons=INJECTED)
    assert (refused.answer.verdict, refused.rank.state) == (Verdict.REFUSED, RankState.IDLE)
    failed = voted(Kind.CONFIGURE).hear(ACT, "live", Kind.CONFIGURE)
    failed.done("live", ACT, ok=False, released=True, reasons=INJECTED)
    assert (failed.answer.verdict, failed.rank.state) == (Verdict.FAILED, RankState.ERROR)


def test_se9_a_fault_while_publishing_is_fatal() -> None:
    driven = voted(Kind.INPUTS).hear(ACT, "live", Kind.INPUTS).done("live", ACT)
    driven.hear(PUBLISH, "live", Kind.INPUTS).done("live", PUBLISH, ok=False, reasons=INJECTED)
    assert driven.answer.verdict is Verdict.FAILED


def test_se5_an_abort_instead_of_the_vote_advances_the_epoch_too() -> None:
    driven = parked(Kind.CONFIGURE)
    driven.hear(ABORT, "live", Kind.CONFIGURE)
    assert (driven.rank.epoch, driven.answer.verdict) == (2, Verdict.YES)
    driven.hear(VOTE, "live", Kind.CONFIGURE)  # late
    assert driven.actions == ()
    driven.hear(RESUME, "live", Kind.CONFIGURE, told=10)
    assert RunUntil(10, 2, 0) in driven.actions


def test_se7_what_was_voted_for_is_discarded_and_its_late_end_is_passed_over() -> None:
    driven = parked(Kind.CONFIGURE).hear(VOTE, "live", Kind.CONFIGURE)
    driven.hear(ABORT, "live", Kind.CONFIGURE)
    assert Do("live", Kind.CONFIGURE, ABORT, {}) in driven.actions
    assert driven.done("live", VOTE).actions == ()


def test_se7_a_round_that_comes_twice_is_answered_as_before_and_done_once() -> None:
    driven = voted(Kind.CONFIGURE)
    first = driven.answer
    assert driven.hear(VOTE, "live", Kind.CONFIGURE).answer == first
    driven.hear(ACT, "live", Kind.CONFIGURE)
    assert driven.hear(ACT, "live", Kind.CONFIGURE).actions == ()


def test_se4_rounds_of_another_generation_or_of_a_command_that_is_over_are_passed_over() -> None:
    driven = parked(Kind.CONFIGURE)
    assert driven.hear(VOTE, "live", Kind.CONFIGURE, generation=2).actions == ()
    assert driven.hear(VOTE, "run", Kind.RUN, epoch=1).actions == ()


@pytest.mark.parametrize("epoch", [0, 1, 3])
def test_se4_another_epoch_is_said_and_no_step_follows(epoch: int) -> None:
    driven = running()
    driven.hear(RESERVE, "live", Kind.STOP, step=4, epoch=epoch)
    assert driven.answer.verdict is Verdict.VIOLATION
    assert driven.answer.violation is not None
    assert (driven.answer.violation.expected, driven.answer.violation.received) == ("2", str(epoch))
    assert isinstance(driven.actions[-1], Leave)
    assert driven.rank.state is RankState.ERROR


@pytest.mark.parametrize(
    ("name", "more"), [(ACT, {"told": 3}), (PUBLISH, {}), (RESUME, {"told": 10}), (VOTE, {}), (ABORT, {})]
)
def test_se4_what_cannot_follow_is_a_violation(name: RoundName, more: dict[str, int]) -> None:
    driven = running()
    driven.hear(name, "live", Kind.CONFIGURE, epoch=2, **more)
    assert driven.answer.verdict is Verdict.VIOLATION


def test_se5_a_barrier_that_does_not_hold_refuses_and_the_epoch_has_advanced_all_the_same() -> None:
    driven = idle()
    driven.hear(VOTE, "run", Kind.RUN, epoch=1, barrier=Barrier(1, Kind.RUN, 4, 0))
    assert (driven.answer.verdict, driven.rank.epoch) == (Verdict.REFUSED, 1)
    assert driven.answer.violation is not None
    assert driven.answer.violation.field == "config_revision"


def test_se5_pending_steps_refuse_quiescent_kinds() -> None:
    driven = parked(Kind.CONFIGURE)
    driven.hear(VOTE, "live", Kind.LOAD, barrier=Barrier(2, Kind.LOAD, None, 0))
    assert driven.answer.violation is not None
    assert (driven.answer.violation.field, driven.answer.violation.expected) == ("pending", "5")


def test_se12_a_step_that_raised_ends_in_error_and_refuses_what_follows() -> None:
    driven = running().do(Broke(4, INJECTED))
    assert (driven.ended.state, driven.ended.step, driven.ended.reasons) == (RankState.ERROR, 4, INJECTED)
    driven.hear(RESERVE, "live", Kind.STOP, epoch=2)
    assert driven.answer.reasons[0].code == "rank_ending"


@pytest.mark.parametrize("ok", [True, False])
def test_se34_close_is_done_on_the_work_thread_in_every_state_then_the_rank_leaves(ok: bool) -> None:
    stops = (Limit(0),)  # of one that steps
    for driven, first in ((Driven(), ()), (idle(), ()), (running(), stops), (running().do(Broke(4, INJECTED)), ())):
        driven.hear(CLOSE, "close", Kind.CLOSE, epoch=driven.rank.epoch + 1)
        assert driven.actions == (*first, Do("close", Kind.CLOSE, CLOSE, {}))
        actions = driven.done("close", CLOSE, ok=ok).actions
        assert driven.answer.verdict is (Verdict.YES if ok else Verdict.FAILED)
        assert Leave("closed") in actions
    assert Driven().hear(CLOSE, "close", Kind.CLOSE, epoch=1).do(Built(0, 0)).actions == ()


def test_se16_a_halt_of_this_generation_and_a_cut_line_end_control() -> None:
    assert running().do(Received(Halt(3, "why"), 0)).actions == (Leave("why"),)
    assert running().do(Received(Halt(2, "why"), 0)).actions == ()
    assert running().do(Cut()).actions == (Leave("the coordinator is gone"),)


def test_se1a_somebody_elses_loop_joins_running_and_leaves_when_it_is_over() -> None:
    driven = Driven().do(Built(0, 0, ENDLESS))
    assert driven.ended.state is RankState.RUNNING
    assert RunUntil(ENDLESS, 0, 0) in driven.actions
    driven.do(Finished(7))
    assert (driven.ended.state, driven.ended.step) == (RankState.CLOSING, 7)
    assert driven.actions[-1] == Leave("the loop is over")
