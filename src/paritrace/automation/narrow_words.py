"""The words of `narrow`: question and answer of a round in one line each (CP-15)."""

from msgspec.structs import replace

from paritrace.automation.narrow_records import Ended, Plan, Question
from paritrace.automation.narrow_rules import covers, followed, outside
from paritrace.compare.differing import differs
from paritrace.compare.result import Comparison, Difference, Group, Repeats
from paritrace.evidence.spans import ranges
from paritrace.reports.headline import statement
from paritrace.reports.wording import count, module_or_root, short_function

WHY = {
    Ended.FOUND: "",
    Ended.OUTSIDE: "it differs before any call of the step: nothing finer is recorded of it",
    Ended.NO_DIFFERENCE: "nothing that was recorded differs",
    Ended.NOT_COMPARED: "no step is recorded on both sides, so nothing could be compared",
    Ended.NOT_REPEATABLE: "stopped: the baseline does not repeat itself there, so the runs cannot be told apart",
    Ended.NOT_SEEN_AGAIN: "stopped: captured again, the runs do not differ there any more",
    Ended.INSIDE_ROUND_OFF: "the compiled run stays inside what the baseline's draws explain: no part is at fault",
    Ended.EVIDENCE_ENDS: "the evidence ends: no single call stands",
}


def question_of(plan: Plan) -> str:
    """What a round asks."""
    match plan.question:
        case Question.RECORD:
            return "at which step do the runs, captured anew, first differ?"
        case Question.REPEAT:
            return "does the baseline repeat itself?"
        case Question.REPEAT_CALL:
            return f"at which call does the baseline differ from itself, at step {plan.step}?"
        case Question.STEP:
            return "at which step do the runs first differ?"
        case Question.MODULES:
            return f"which module at step {plan.step}?"
        case Question.OPERATORS:
            return f"which operator of {module_or_root(plan.module)} at step {plan.step}?"
        case Question.EVERYTHING:
            return f"which operator at step {plan.step}, in the whole step?"
        case Question.COMPILER:
            return f"which part of the compiler at step {plan.step}?"


def answer_of(plan: Plan, found: Comparison) -> str:
    """What it found."""
    if plan.question is Question.REPEAT:
        return _repeats(found)
    if plan.question is Question.REPEAT_CALL and found.repeats is not None:
        return _repeated_call(found, found.repeats)
    if not differs(found):
        return f"no difference ({_steps(found)})"
    if plan.question in (Question.STEP, Question.RECORD):
        told = f"step {found.ladder_step}: {_first(found)}"
        return f"{told}; {covers(found)}" if covers(found) else told
    return _first(found)


def _repeats(found: Comparison) -> str:
    if not found.ranks_compared:
        return "not known: no rank was recorded twice"
    if not differs(found):
        return f"yes, bit for bit ({_steps(found)})"
    return f"no: from step {found.ladder_step} on it differs from itself ({_first(found)})"


def _repeated_call(found: Comparison, own: Repeats) -> str:
    if not own.num_differing:
        return f"none of {count(own.num_repeats, 'repeat')} differs this time"
    return f"{_first(found)}, {own.num_differing} of {count(own.num_repeats, 'repeat')}"


def _steps(found: Comparison) -> str:
    noun = "step" if len(found.steps_compared) == 1 else "steps"
    return f"{noun} {ranges(found.steps_compared)}" if found.steps_compared else "no step was recorded twice"


def _first(found: Comparison) -> str:
    place = followed(found)
    if place is None or (outside(found) and not place.file):
        one = found.outside[0] if found.outside else None
        return statement(found)[1] if one is None else f"{one.group} {one.name} before any call"
    return place_in_words(place)


def operator_in_words(place: Difference) -> str:
    """What stands, by its name and line: of a collective the call, since the sentence above says the rest."""
    return place_in_words(replace(place, collective=""))


def place_in_words(place: Difference) -> str:
    """A place in a few words: operator or module and its line, or the figure that differs."""
    if place.collective:
        return place.collective
    if place.level == "digest":
        return place.slot if place.slot == place.function else f"{place.function.replace('_', ' ')} {place.slot}"
    site = (place.baseline_site or place.candidate_site).rpartition("/")[2]
    if place.region:
        ours, theirs = place.region_calls
        return f"{module_or_root(place.module)}: {ours} calls against {theirs} ({site})"
    what = module_or_root(place.module) if place.level == "module" else short_function(place.function)
    beyond = ", beyond round-off" if place.group is Group.EXCEEDS else ""
    return f"{what} ({site}, {place.phase}){beyond}"
