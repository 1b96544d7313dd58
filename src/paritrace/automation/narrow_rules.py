"""What `narrow` does next: rules over the comparisons that it has seen (CP-15)."""

from collections.abc import Sequence

from paritrace.automation.narrow_records import Asked, Ended, Plan, Question, Seen
from paritrace.compare.result import Comparison, Difference, Group, Mark

AROUND = frozenset({"code", "config"})  # what changed around the runs, not what they computed
BY_CALL = frozenset({Question.MODULES, Question.OPERATORS, Question.EVERYTHING})


def next_plan(asked: Asked, seen: Sequence[Seen]) -> Plan | Ended:
    """The next round, or why there is none."""
    done = {one.round.plan.question: one for one in seen}
    if not asked.recorded and Question.RECORD not in done:
        return Plan(Question.RECORD)
    if Question.REPEAT not in done:
        return Plan(Question.REPEAT)
    if asked.recorded and Question.STEP not in done:
        return Plan(Question.STEP)
    last = next(one for one in reversed(seen) if one.round.plan.question is not Question.REPEAT)
    if last.round.plan.question in BY_CALL:
        return _after_calls(asked, last)
    return _after_steps(asked, last.comparison, repeat=done[Question.REPEAT].comparison)


def _after_steps(asked: Asked, found: Comparison, *, repeat: Comparison) -> Plan | Ended:
    """The runs were compared over their steps, and the baseline with itself."""
    if not differs(found):
        return Ended.NO_DIFFERENCE
    if differs(repeat) and repeat.ladder_step <= found.ladder_step:
        return Ended.NOT_REPEATABLE
    place = followed(found)
    if outside(found):
        return Ended.OUTSIDE
    if place is not None and stands(place):
        return Ended.FOUND
    if place is not None and _module_of(place) and (not asked.draws or place.group is Group.EXCEEDS):
        return _operators(asked, found, place)
    return Plan(Question.MODULES, found.ladder_step, draws=asked.draws)


def _after_calls(asked: Asked, last: Seen) -> Plan | Ended:
    """A step was captured again, call by call."""
    question, found = last.round.plan.question, last.comparison
    place = followed(found)
    if not differs(found):
        return _nothing(asked, last)
    if outside(found):
        return Ended.OUTSIDE
    if place is not None and stands(place):
        return Ended.FOUND
    if question is Question.MODULES:
        if place is not None and _module_of(place):
            return _operators(asked, found, place)
        return Plan(Question.EVERYTHING, last.round.plan.step, draws=asked.draws)
    if question is Question.OPERATORS:
        return Plan(Question.EVERYTHING, last.round.plan.step, draws=last.round.plan.draws)
    return Ended.EVIDENCE_ENDS


def _nothing(asked: Asked, last: Seen) -> Plan | Ended:
    if last.round.plan.question is Question.OPERATORS:
        return Plan(Question.EVERYTHING, last.round.plan.step, draws=asked.draws)
    return Ended.NOT_SEEN_AGAIN


def _operators(asked: Asked, found: Comparison, place: Difference) -> Plan:
    """Bits decide inside a module whose own inputs agree in bits: draws cost as many runs, and tell no more there."""
    draws = 0 if inputs_agree(found, place) else asked.draws
    return Plan(Question.OPERATORS, place.step, module=place.module, draws=draws)


def inputs_agree(found: Comparison, place: Difference) -> bool:
    """Whether what went into a place has the same bits on both sides."""
    same = (one for one in found.origins if one.group is Group.ORIGINATES)
    return any((one.rank, one.step, one.module) == (place.rank, place.step, place.module) for one in same)


def followed(found: Comparison) -> Difference | None:
    """The place to look into: that of the first finding, which leaves the envelope where there is one."""
    return found.findings[0].place if found.findings else found.first_difference


def stands(place: Difference) -> bool:
    """Whether a place needs no finer look: one operator, one region of operators, or what a collective did."""
    return place.level == "op" or (bool(place.collective) and place.level != "digest")


def outside(found: Comparison) -> bool:
    """Whether what differs first was there before any call of the step."""
    place = followed(found)
    if place is None:
        return bool(found.outside)
    return place.group is Group.OUTSIDE and not place.file


def differs(found: Comparison) -> bool:
    """Whether anything that was computed differs."""
    marks = (mark for rung, mark in found.ladder.items() if rung not in AROUND)
    return bool(found.findings or found.outside or found.counts.different or Mark.BEYOND in marks)


def _module_of(place: Difference) -> str:
    """The module to look into; "" where the place names none, or is the whole model."""
    return place.module if place.level == "module" and not place.region else ""


def covers(found: Comparison) -> str:
    """The steps that were compared, where they do not begin with the first; "" where they do."""
    steps = found.steps_compared
    return (
        f"steps {steps[0]} to {steps[-1]} were recorded on both sides, not those before" if steps and steps[0] else ""
    )
