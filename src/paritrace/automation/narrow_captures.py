"""What each round captures again: which sides, by which options of `paritrace run` (CP-15)."""

from paritrace.automation.narrow_records import Plan, Question

REGIONS = 16  # of a tensor, for where in it a difference lies; four are too coarse for a row or a head


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
        case Question.EVERYTHING:
            return (*fine, *wider)
        case Question.STEP | Question.COMPILER:
            return ()


def draws_option(plan: Plan) -> tuple[str, ...]:
    """For the baseline alone: its draws judge the round."""
    return (f"--perturb={plan.draws}",) if plan.draws else ()
