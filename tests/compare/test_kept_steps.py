"""States and marks of a black box's steps have their place among its calls, although written before (CA-36)."""

from paritrace.compare.kept_steps import KeptSteps
from paritrace.evidence.calls import Call, Context, LossMark, Phase, State, StepMark
from paritrace.evidence.gaps import CaptureGap, Gap

CONTEXTS = {
    0: Context(0, 30, 0, Phase.FORWARD),
    1: Context(1, 30, 0, Phase.BACKWARD),
    2: Context(2, 30, 1, Phase.FORWARD),
    3: Context(3, 30, 1, Phase.BACKWARD),
    4: Context(4, 31, 0, Phase.FORWARD),
}


def call(number: int, context: int) -> Call:
    return Call(number, number + 1, -1, 0, 0, 0, 0, context, 0, 0, -1, -1, 0, 0, 0, (), ())


CALLS = [call(100, 0), call(102, 1), call(104, 2), call(106, 3), call(108, 4)]
KEPT = KeptSteps(CALLS, contexts=CONTEXTS, steps={30})
NONE: Gap[CaptureGap] = Gap(CaptureGap.NOT_OBSERVED)


def state(moment: str, *, microbatch: int = 0, step: int = 30) -> State:
    return State(step, microbatch, moment, 0, ())


def test_each_moment_of_a_step_has_its_place() -> None:
    assert KEPT.before(state("begin")) == 99
    assert KEPT.before(state("batch")) == 99
    assert KEPT.before(LossMark(30, 0, NONE)) == 101
    assert KEPT.before(state("batch", microbatch=1)) == 103
    assert KEPT.before(LossMark(30, 1, NONE)) == 105
    assert KEPT.before(state("grads", microbatch=1)) == 107
    assert KEPT.before(StepMark(30, 0, 0, 0, 0, 0, NONE)) == 107


def test_marks_of_other_steps_stay_where_they_were_read() -> None:
    assert KEPT.before(state("begin", step=31)) is None
    assert KEPT.before(StepMark(29, 0, 0, 0, 0, 0, NONE)) is None


def test_a_microbatch_without_calls_takes_the_places_of_its_step() -> None:
    assert KEPT.before(state("batch", microbatch=5)) == 99
    assert KEPT.before(LossMark(30, 5, NONE)) == 105
