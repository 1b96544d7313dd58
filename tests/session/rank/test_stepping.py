"""The gate between two steps (SE-4, SE-6)."""

import threading
import time
from collections.abc import Callable

import pytest

from paritrace.errors import InternalError
from paritrace.session.commands import Kind, Reason
from paritrace.session.messages import RoundName
from paritrace.session.rank.stepping import Gate, Leaving
from paritrace.session.rank_events import Broke, Do, Done, RankEvent, RunUntil, Stepped

WAIT_SECONDS = 20.0


class Worked:
    """A gate with its work thread, which takes steps until it leaves."""

    def __init__(self, *, step: Callable[[int], None] | None = None) -> None:
        self.events: list[RankEvent] = []
        self.taken: list[int] = []
        self.drained = 0
        self.left: BaseException | None = None
        self.jump: int | None = None
        self._step = step
        self._changed = threading.Condition()
        self.gate = Gate(tell=self._tell, perform=self._perform, drain=self._drain)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        step = 0
        try:
            while True:
                step = self.gate.boundary(step)
                if self._step is not None:
                    self._step(step)
                self.taken.append(step)
                step += 1
        except (Leaving, InternalError) as error:
            self.left = error

    def _tell(self, event: RankEvent) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def _perform(self, item: Do) -> Done:
        return Done(item.command_id, item.name, ok=True, step=self.jump)

    def _drain(self) -> None:
        self.drained += 1

    def heard(self, event: RankEvent) -> None:
        """Wait until the work thread has said this."""
        with self._changed:
            assert self._changed.wait_for(lambda: event in self.events, WAIT_SECONDS), self.events

    def ended(self) -> None:
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()


def test_se6_steps_below_the_limit_are_taken_and_the_stop_is_told_once_with_the_device_drained() -> None:
    worked = Worked()
    with worked.gate.held():
        worked.gate.run_until(RunUntil(5, 0, 0))
    worked.heard(Stepped(5))
    assert worked.taken == [0, 1, 2, 3, 4]
    assert worked.events == [Stepped(5)]
    assert worked.drained == 1
    worked.gate.leave("over")
    worked.ended()
    assert isinstance(worked.left, Leaving)


def test_se6_a_reserved_step_is_the_first_that_has_not_begun_and_none_begins_after_it() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(step: int) -> None:
        if step == 3:
            begun.set()
            assert go_on.wait(WAIT_SECONDS)

    worked = Worked(step=hold)
    with worked.gate.held():
        worked.gate.run_until(RunUntil(100, 0, 0))
    assert begun.wait(WAIT_SECONDS)
    with worked.gate.held() as reserved:
        worked.gate.limit(reserved)
    assert reserved == 4
    go_on.set()
    worked.heard(Stepped(4))
    with worked.gate.held():  # another rank can park no lower than at 7
        worked.gate.limit(7)
    worked.heard(Stepped(7))
    assert worked.taken == list(range(7))
    worked.gate.leave("over")
    worked.ended()


def test_se4_no_step_begins_once_the_epoch_is_another_than_the_run_was_admitted_under() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(step: int) -> None:
        if step == 2:
            begun.set()
            assert go_on.wait(WAIT_SECONDS)

    worked = Worked(step=hold)
    with worked.gate.held():
        worked.gate.stand(epoch=1, config_revision=0)
        worked.gate.run_until(RunUntil(100, 1, 0))
    assert begun.wait(WAIT_SECONDS)
    with worked.gate.held():
        worked.gate.stand(epoch=2, config_revision=0)
    go_on.set()
    worked.ended()
    assert worked.taken == [0, 1, 2]
    assert isinstance(worked.left, InternalError)
    assert worked.left.code == "step_fence"


def test_se29_what_is_handed_over_is_done_in_order_and_before_further_steps() -> None:
    worked = Worked()
    first, second = (Do(name, Kind.CONFIGURE, RoundName.ACT, {}) for name in ("first", "second"))
    with worked.gate.held():
        worked.gate.give(first)
        worked.gate.give(second)
        worked.gate.run_until(RunUntil(2, 0, 0))
    worked.heard(Stepped(2))
    assert worked.events == [
        Done("first", RoundName.ACT, ok=True, step=None),
        Done("second", RoundName.ACT, ok=True, step=None),
        Stepped(2),
    ]
    worked.gate.leave("over")
    worked.ended()


def test_se8_a_load_sets_the_step_to_go_on_from() -> None:
    worked = Worked()
    with worked.gate.held():
        worked.gate.run_until(RunUntil(50, 0, 0))
    worked.heard(Stepped(50))
    worked.taken.clear()
    worked.jump = 40  # below the limit of the run that is over: no step begins before another one is admitted
    with worked.gate.held():
        worked.gate.give(Do("load", Kind.LOAD, RoundName.ACT, {}))
    worked.heard(Done("load", RoundName.ACT, ok=True, step=40))
    with worked.gate.held() as step:
        assert step == 40
        worked.gate.run_until(RunUntil(42, 0, 0))
    worked.heard(Stepped(42))
    assert worked.taken == [40, 41]
    worked.gate.leave("over")
    worked.ended()


def test_se34_leaving_is_no_exception_that_a_workload_catches() -> None:
    assert not issubclass(Leaving, Exception)


def test_a_broken_gate_begins_no_step_but_does_what_it_is_given() -> None:
    reasons = (Reason(0, "step_raised", "no"),)
    gate: list[Gate] = []

    def breaks(step: int) -> None:
        if step == 1:
            gate[0].broke(step, reasons)

    worked = Worked(step=breaks)
    gate.append(worked.gate)
    with worked.gate.held():
        worked.gate.run_until(RunUntil(5, 0, 0))
    worked.heard(Broke(1, reasons))
    close = Do("close", Kind.CLOSE, RoundName.CLOSE, {})
    with worked.gate.held():
        worked.gate.limit(10)
        worked.gate.give(close)
    worked.heard(Done("close", RoundName.CLOSE, ok=True))
    worked.gate.leave("closed")
    worked.ended()
    assert worked.taken == [0]


def test_se16_a_freed_gate_lets_every_step_begin_whatever_was_asked() -> None:
    worked = Worked()
    with worked.gate.held():
        worked.gate.run_until(RunUntil(3, 0, 0))
    worked.heard(Stepped(3))
    worked.gate.free()
    deadline = time.monotonic() + WAIT_SECONDS
    while len(worked.taken) < 50 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert worked.taken[:50] == list(range(50))
    worked.gate.leave("over")
    worked.ended()


def test_se16_a_freed_gate_stays_free_whatever_is_said_after_it() -> None:
    """A rank that is turned away hears so before or after its loop begins."""
    gate = Gate(tell=lambda _: None, perform=_nothing_given, drain=lambda: None)
    taken: list[int] = []
    gate.free()
    gate.stands_before(5)
    with gate.held():
        gate.reserve()
        gate.stand(epoch=3, config_revision=1)
        gate.give(Do("a", Kind.SAVE, RoundName.VOTE, {}))
    loop = threading.Thread(target=lambda: taken.extend(gate.boundary(step) for step in range(5, 9)), daemon=True)
    loop.start()
    loop.join(WAIT_SECONDS)
    assert taken == [5, 6, 7, 8]


def test_se13_the_pace_of_the_work_is_known_after_enough_steps() -> None:
    worked = Worked()
    with worked.gate.held():
        worked.gate.run_until(RunUntil(5, 0, 0))
    worked.heard(Stepped(5))
    assert worked.gate.pace().step_p99_seconds is None
    with worked.gate.held():
        worked.gate.run_until(RunUntil(100, 0, 0))
    worked.heard(Stepped(100))
    pace = worked.gate.pace()
    assert pace.step == 100
    assert pace.step_p99_seconds is not None
    assert 0 < pace.step_p99_seconds < 5
    worked.gate.leave("over")
    worked.ended()


def _nothing_given(item: Do) -> Done:
    pytest.fail(f"{item} was not given by anybody")


def test_pf17_a_boundary_below_the_limit_costs_a_few_microseconds() -> None:
    worked_events: list[RankEvent] = []
    gate = Gate(tell=worked_events.append, perform=_nothing_given, drain=lambda: None)
    with gate.held():
        gate.run_until(RunUntil(1 << 40, 0, 0))
    step = gate.boundary(0)
    lowest_ns = 1 << 62
    for _ in range(20):  # the least of many blocks: a loaded machine takes time from some of them
        began = time.perf_counter_ns()
        for _ in range(1000):
            step = gate.boundary(step + 1)
        lowest_ns = min(lowest_ns, time.perf_counter_ns() - began)
    assert lowest_ns / 1000 <= 5000
    assert worked_events == []
