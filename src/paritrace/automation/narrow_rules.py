"""What `narrow` does next: rules over the comparisons that it has seen (CP-15)."""

from collections.abc import Sequence

from msgspec.structs import replace

from paritrace.automation.narrow_records import ITSELF, Asked, Ended, Plan, Question, Seen
from paritrace.compare.differing import differs
from paritrace.compare.repeats import is_beyond, shared
from paritrace.compare.result import Comparison, Difference, Group, Mark

OWN = frozenset({Group.ORIGINATES, Group.EXCEEDS, Group.WITHIN})  # groups of a place that is not fed a difference
MOST_ROUND_OFF = {"float32": 2.0**-12, "float64": 2.0**-26.5}
BY_CALL = frozenset({Question.MODULES, Question.OPERATORS, Question.EVERYTHING, Question.COMPILER})
JUDGED_RUNGS = (
    "forward",
    "loss",
    "backward",
    "grad norm",
)  # whose sizes draws judge; of the others bits alone are known


def next_plan(asked: Asked, seen: Sequence[Seen]) -> Plan | Ended:
    """The next round, or why there is none."""
    done = {one.round.plan.question: one for one in seen}
    if not asked.recorded and Question.RECORD not in done:
        return Plan(Question.RECORD)
    if Question.REPEAT not in done:
        return Plan(Question.REPEAT)
    if asked.recorded and Question.STEP not in done:
        return Plan(Question.STEP)
    last = next(one for one in reversed(seen) if one.round.plan.question not in ITSELF)
    if last.round.plan.question in BY_CALL:
        return _after_calls(asked, last)
    repeat = done[Question.REPEAT].comparison
    if _parts_from_itself(repeat, last.comparison):
        return Ended.NOT_REPEATABLE if Question.REPEAT_CALL in done else _repeated(repeat)
    return _after_steps(asked, last.comparison)


def _parts_from_itself(repeat: Comparison, found: Comparison) -> bool:
    """Whether the baseline differs from itself where the runs part, or before."""
    return differs(found) and differs(repeat) and repeat.ladder_step <= found.ladder_step


def _repeated(repeat: Comparison) -> Plan:
    return Plan(Question.REPEAT_CALL, repeat.ladder_step)


def _after_steps(asked: Asked, found: Comparison) -> Plan | Ended:
    """The runs were compared over their steps, and the baseline repeats itself that far."""
    if not differs(found):
        return Ended.NO_DIFFERENCE if found.steps_compared else Ended.NOT_COMPARED
    place = followed(found)
    if outside(found):
        return Ended.OUTSIDE
    if asked.compiler:
        return Plan(Question.MODULES, found.ladder_step, draws=asked.draws)
    if place is not None and stands(place):
        return Ended.FOUND
    if place is not None and module_to_open(place) and (not asked.draws or place.group is Group.EXCEEDS):
        return _operators(asked, found, place)
    return Plan(Question.MODULES, found.ladder_step, draws=asked.draws)


def _after_calls(asked: Asked, last: Seen) -> Plan | Ended:
    """A step was captured again, call by call."""
    question, found = last.round.plan.question, last.comparison
    if asked.compiler:
        return _of_compiler(last)
    place = followed(found)
    if not differs(found):
        return _nothing(asked, last)
    if outside(found):
        return Ended.OUTSIDE
    if place is not None and stands(place):
        return Ended.FOUND if is_free(found, place) else Ended.NOT_REPEATABLE
    if question is Question.MODULES:
        if place is not None and module_to_open(place):
            return _operators(asked, found, place)
        return Plan(Question.EVERYTHING, last.round.plan.step, draws=asked.draws)
    if question is Question.OPERATORS:
        return Plan(Question.EVERYTHING, last.round.plan.step, draws=last.round.plan.draws)
    return Ended.EVIDENCE_ENDS


def _of_compiler(last: Seen) -> Plan | Ended:
    """Both sides were captured at the step; then the bisector spoke."""
    if last.round.plan.question is Question.COMPILER:
        return Ended.FOUND
    if not differs(last.comparison):
        return Ended.NOT_SEEN_AGAIN
    if not parts_beyond(last.comparison):
        return Ended.INSIDE_ROUND_OFF
    return Plan(Question.COMPILER, last.round.plan.step)


def parts_beyond(found: Comparison) -> bool:
    """Whether runs part by more than draws explain; without draws, in any bit."""
    if found.envelope is None or not found.envelope.judged:
        return differs(found)
    return bool(found.envelope.beyond) or any(found.ladder.get(rung) is Mark.BEYOND for rung in JUDGED_RUNGS)


def _nothing(asked: Asked, last: Seen) -> Plan | Ended:
    """Where nothing differs: code outside modules is seen operator by operator only."""
    if last.round.plan.question is Question.MODULES and not last.comparison.counts.paired:
        return Plan(Question.EVERYTHING, last.round.plan.step, draws=asked.draws)
    if last.round.plan.question is Question.OPERATORS:
        return Plan(Question.EVERYTHING, last.round.plan.step, draws=asked.draws)
    return Ended.NOT_SEEN_AGAIN


def _operators(asked: Asked, found: Comparison, place: Difference) -> Plan:
    """Bits decide inside a module whose own inputs agree in bits: draws cost as many runs, and tell no more there."""
    draws = 0 if inputs_agree(found, place) else asked.draws
    return Plan(Question.OPERATORS, place.step, module=module_to_open(place), draws=draws)


def inputs_agree(found: Comparison, place: Difference) -> bool:
    """Whether what went into a place has the same bits on both sides."""
    same = (one for one in found.origins if one.group is Group.ORIGINATES)
    return any((one.rank, one.step, one.module) == (place.rank, place.step, place.module) for one in same)


def followed(found: Comparison) -> Difference | None:
    """The place to look into: that of the first finding, which leaves the envelope where there is one."""
    return found.findings[0].place if found.findings else found.first_difference


def is_free(found: Comparison, place: Difference) -> bool:
    """Whether a place can be put down to the change: the baseline repeats itself that far, or draws judge it beyond."""
    judged = any(one.place is place and is_beyond(one) for one in found.findings)
    return judged or not shared(found.repeats, place)


def stands(place: Difference) -> bool:
    """Whether a place needs no finer look: one operator, one region of operators, or what a collective did."""
    return place.level == "op" or (bool(place.collective) and place.level != "digest")


def outside(found: Comparison) -> bool:
    """Whether what differs first was there before any call of the step."""
    place = followed(found)
    if place is None:
        return bool(found.outside)
    return place.group is Group.OUTSIDE and not place.file


def module_to_open(place: Difference) -> str:
    """The module to look into: the place's own where what went in is the same or inside round-off, else the one around
    it, whose own code made what differs; "" where there is none but the whole model."""
    if place.level != "module" or place.region:
        return ""
    return place.module if place.group in OWN else place.module.rpartition(".")[0]


def by_size(found: Comparison, upcast: str) -> Comparison:
    """Of runs in a wider precision the first finding that is larger than its round-off comes first (CP-10b).

    Without draws round-off is not measured: it is taken for at most the square root of the precision's unit, and the
    strength says so. Draws judge by themselves.
    """
    if not upcast or not found.findings or (found.envelope is not None and found.envelope.judged):
        return found
    limit = MOST_ROUND_OFF[upcast]
    larger = [one for one in found.findings if one.measured is not None and one.measured > limit]
    first = larger[0] if larger else found.findings[0]
    told = replace(first, strength=_against(first.measured, limit, upcast))
    return replace(found, findings=(told, *(one for one in found.findings if one is not first)))


def _against(measured: float | None, limit: float, upcast: str) -> str:
    bound = f"{limit:.1e}, the square root of {upcast}'s unit: taken for the most, not measured"
    if measured is None:
        return f"bits only: no size was recorded to hold against round-off ({bound})"
    if measured > limit:
        return f"an error of {measured:.1e} in {upcast} is no round-off ({bound})"
    return f"an error of {measured:.1e} in {upcast} is round-off ({bound})"


def covers(found: Comparison) -> str:
    """The steps that were compared, where they do not begin with the first; "" where they do."""
    steps = found.steps_compared
    return (
        f"steps {steps[0]} to {steps[-1]} were recorded on both sides, not those before" if steps and steps[0] else ""
    )
