"""The step machine: what ends a step, which micro-batch and which phase a call belongs to (CA-3)."""

from dataclasses import replace
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.capture.steps import Steps
from paritrace.evidence.calls import Phase

ADAM, MUON = 1, 2


class Training:
    """Drives the machine as the observers of torch do, and notes where steps end."""

    def __init__(self) -> None:
        self.steps = Steps()
        self.ended: list[int] = []

    def end(self, to: int | None = None) -> None:
        self.ended.append(self.steps.step)
        self.steps.advance(to)

    def forward(self) -> int:
        """A root module's forward; returns its micro-batch."""
        if self.steps.ends_before_forward():
            self.end()
        assert self.steps.backward_depth or self.steps.optimizer_depth or self.steps.phase(in_module=True) == "forward"
        return self.steps.microbatch

    def backward(self) -> int:
        if self.steps.ends_before_forward():
            self.end()
        self.steps.backward_begins()
        assert self.steps.phase(in_module=False) is Phase.BACKWARD
        microbatch = self.steps.microbatch
        self.steps.backward_ended()
        return microbatch

    def optimizer(self, which: int = ADAM) -> int:
        if self.steps.ends_before_optimizer(which):
            self.end()
        self.steps.optimizer_begins()
        assert self.steps.phase(in_module=False) is Phase.OPTIMIZER
        microbatch = self.steps.microbatch
        self.steps.optimizer_ended(which)
        return microbatch


def test_a_plain_loop_has_a_step_per_optimizer_step() -> None:
    training = Training()
    for step in range(4):
        assert training.forward() == 0
        assert training.steps.step == step
        assert training.backward() == 0
        assert training.optimizer() == 0
    assert training.ended == [0, 1, 2]
    assert (training.steps.step, training.steps.due) == (3, True)


def test_a_step_ends_only_when_the_next_begins() -> None:
    training = Training()
    training.forward()
    training.backward()
    training.optimizer()
    assert training.ended == []
    training.forward()
    assert training.ended == [0]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_accumulated_backwards_are_micro_batches_of_one_step(count: int) -> None:
    training = Training()
    for step in range(3):
        pairs = [(training.forward(), training.backward()) for _ in range(count)]
        assert pairs == [(index, index) for index in range(count)]
        assert training.optimizer() == count - 1, "the optimizer belongs to the last one"
        assert training.steps.backwards == count
        assert training.steps.step == step


def test_two_optimizers_step_in_one_step_and_the_first_again_opens_the_next() -> None:
    training = Training()
    training.forward()
    training.backward()
    training.optimizer(MUON)
    training.optimizer(ADAM)
    assert (training.ended, training.steps.optimizer_steps) == ([], 2)
    training.optimizer(MUON)
    assert (training.ended, training.steps.optimizer_steps) == ([0], 1)


def test_the_evaluations_of_a_closure_stay_in_their_step() -> None:
    """LBFGS calls forward and backward many times inside of its step."""
    training = Training()
    for _ in range(2):
        if training.steps.ends_before_optimizer(ADAM):
            training.end()
        training.steps.optimizer_begins()
        for evaluation in range(3):
            assert training.forward() == max(evaluation - 1, 0)
            assert training.steps.phase(in_module=True) is Phase.FORWARD
            assert training.backward() == evaluation
        training.steps.optimizer_ended(ADAM)
    assert training.ended == [0]


def test_named_steps_end_nothing_by_themselves() -> None:
    training = Training()
    training.steps.advance(100)
    training.steps.named = True
    for _ in range(3):
        training.forward()
        training.backward()
        training.optimizer()
    assert training.ended == []
    assert training.steps.step == 100
    training.end(101)
    assert (training.steps.step, training.steps.due, training.steps.backwards) == (101, False, 0)


def test_a_named_micro_batch_wins() -> None:
    training = Training()
    training.steps.named_microbatch = 7
    assert training.forward() == training.backward() == training.optimizer() == 7


def test_an_optimizer_step_that_never_ended_is_forgotten() -> None:
    """A closure that raises: torch calls no hook after the step, and the next steps must end all the same."""
    training = Training()
    training.forward()
    training.backward()
    training.steps.optimizer_begins()
    training.steps.optimizers_running(0)
    assert training.steps.phase(in_module=False) is Phase.FORWARD
    assert training.forward() == 1
    training.backward()
    training.optimizer()
    training.forward()
    assert training.ended == [0]


class Event(Enum):
    FORWARD = "forward"
    BACKWARD = "backward"
    ADAM = "adam"
    MUON = "muon"
    NAME = "name"


@given(st.lists(st.sampled_from(Event), max_size=40))
def test_whatever_happens_steps_rise_and_counts_hold(events: list[Event]) -> None:
    training = Training()
    before = replace(training.steps, stepped=set())
    for event in events:
        match event:
            case Event.FORWARD:
                assert training.forward() == training.steps.microbatch
            case Event.BACKWARD:
                assert 0 <= training.backward() < training.steps.backwards
            case Event.ADAM | Event.MUON:
                which = ADAM if event is Event.ADAM else MUON
                training.optimizer(which)
                assert which in training.steps.stepped
            case Event.NAME:
                training.end(training.steps.step + 10)
                training.steps.named = True
        now = training.steps
        assert now.step >= before.step
        assert (now.backward_depth, now.optimizer_depth) == (0, 0)
        assert now.due == bool(now.stepped)
        assert now.microbatch >= 0
        assert now.phase(in_module=True) is Phase.FORWARD
        if now.named:
            assert now.step == before.step or event is Event.NAME
        before = replace(now, stepped=set(now.stepped))
    assert training.ended == sorted(set(training.ended)), "a step ends once"


@given(st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_any_regular_loop_is_counted_right(steps: int, accumulation: int, two: bool) -> None:
    training = Training()
    for step in range(steps):
        for index in range(accumulation):
            assert training.forward() == index
            assert training.backward() == index
        for which in (ADAM, MUON) if two else (ADAM,):
            training.optimizer(which)
        assert training.steps.step == step
        assert training.steps.optimizer_steps == (2 if two else 1)
    assert training.ended == list(range(steps - 1))
