"""What each round captures again: which sides, by which options of `paritrace run` (CP-15)."""

from msgspec import Struct
from msgspec.structs import replace

from paritrace.automation.narrow_records import Finer, Plan, Question
from paritrace.automation.narrow_sides import AskedSide
from paritrace.automation.narrow_task import BASELINE, CANDIDATE, Narrowing

NUM_REPEATS = 3  # of a baseline that does not repeat itself: one may agree by chance, and each costs a whole run

REPEAT = "repeat-"  # how runs are named that repeat the baseline of their round


class Capture(Struct, frozen=True):
    """One run to be made in a round: its name in the round's folder, whose program, and how it is captured."""

    name: str
    side: AskedSide
    options: Finer


def captures_of(task: Narrowing, plan: Plan) -> list[Capture]:
    """The runs that a round makes, the baseline first.

    A round by operators repeats the baseline too: where a call differs by itself is seen only where calls are recorded.
    """
    options = options_for(plan, upcast=task.asked.upcast)
    baseline = Capture(BASELINE, task.baseline, replace(options, draws=plan.draws))  # its draws judge the round
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


def options_for(plan: Plan, *, upcast: str = "") -> Finer:
    """How a round captures; nothing where it captures nothing."""
    finest = Finer(levels=("module", "op"), window=plan.step, fine=True, upcast=upcast)
    match plan.question:
        case Question.RECORD | Question.REPEAT:
            return Finer(levels=("digest",), upcast=upcast)
        case Question.MODULES:
            return Finer(levels=("module",), window=plan.step, upcast=upcast)
        case Question.OPERATORS:
            return replace(finest, select=(plan.module, f"{plan.module}.*"))
        case Question.EVERYTHING | Question.REPEAT_CALL:
            return finest
        case Question.STEP | Question.COMPILER:
            return Finer()
