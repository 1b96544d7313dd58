"""What each round captures again: which sides, by which options of `paritrace run` (CP-15)."""

from msgspec import Struct
from msgspec.structs import replace

from paritrace.automation.narrow_records import Plan, Question
from paritrace.automation.narrow_sides import AskedSide
from paritrace.automation.narrow_task import BASELINE, CANDIDATE, Narrowing

NUM_REPEATS = 3  # of a baseline that does not repeat itself: one may agree by chance, and each costs a whole run
REGIONS = 16  # of a tensor, for where in it a difference lies; four are too coarse for a row or a head

REPEAT = "repeat-"  # how runs are named that repeat the baseline of their round


class Capture(Struct, frozen=True):
    """One run to be made in a round: its name in the round's folder, whose program, and the capture options."""

    name: str
    side: AskedSide
    options: tuple[str, ...]


def captures_of(task: Narrowing, plan: Plan) -> list[Capture]:
    """The runs that a round makes, the baseline first.

    A round by operators repeats the baseline too: where a call differs by itself is seen only where calls are recorded.
    """
    options = options_for(plan, upcast=task.asked.upcast)
    baseline = Capture(BASELINE, task.baseline, (*options, *draws_option(plan)))
    match plan.question:
        case Question.STEP | Question.COMPILER:
            return []
        case Question.REPEAT:
            return [baseline]
        case Question.REPEAT_CALL:
            return [baseline, *(replace(baseline, name=f"{REPEAT}{number}") for number in range(1, NUM_REPEATS + 1))]
        case Question.RECORD | Question.MODULES:
            return [baseline, Capture(CANDIDATE, task.candidate, options)]
        case Question.OPERATORS | Question.EVERYTHING:
            repeat = Capture(f"{REPEAT}1", task.baseline, options)
            return [baseline, Capture(CANDIDATE, task.candidate, options), repeat]


def options_for(plan: Plan, *, upcast: str = "") -> tuple[str, ...]:
    """The capture options of a round."""
    window = f"--steps={plan.step}:{plan.step + 1}"
    fine = ("--level=module", "--level=op", "--statistics", f"--regions={REGIONS}", window)
    wider = (f"--upcast={upcast}",) if upcast else ()
    match plan.question:
        case Question.RECORD | Question.REPEAT:
            return ("--level=digest", *wider)
        case Question.MODULES:
            return ("--level=module", window, *wider)
        case Question.OPERATORS:
            return (*fine, f"--select={plan.module}", f"--select={plan.module}.*", *wider)
        case Question.EVERYTHING | Question.REPEAT_CALL:
            return (*fine, *wider)
        case Question.STEP | Question.COMPILER:
            return ()


def draws_option(plan: Plan) -> tuple[str, ...]:
    """For the baseline alone: its draws judge the round."""
    return (f"--perturb={plan.draws}",) if plan.draws else ()
