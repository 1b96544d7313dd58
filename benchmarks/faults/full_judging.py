"""Rules for pairs behind a benign kernel change: what stands out is judged, not what merely differs (CP-18)."""

from msgspec.structs import replace

from benchmarks.faults.case import Answer, Control, Expected, Fault
from benchmarks.faults.judging import Sources, answer_for, named_first, same_moment
from paritrace.compare.result import Comparison, Finding, Group

CLAIMED_BEYOND = (Group.EXCEEDS,)


def judge_masked(fault: Fault, comparison: Comparison, sources: Sources) -> Answer:
    """How the first place that is not said to be inside round-off stands to the planted one.

    Exact: the module (or one inside it), or the line, parameter or batch. Adjacent: the module around it or one beside
    it in the same block. All of it at the planted step, pass and phase.
    """
    unexplained = without_explained(comparison)
    answers = {at_most(expected, beyond_answer(expected, unexplained, sources)) for expected in fault.expected}
    return next((answer for answer in (Answer.EXACT, Answer.ADJACENT) if answer in answers), Answer.MISSED)


def at_most(expected: Expected, answer: Answer) -> Answer:
    """Right where another call is named than the planted one, that is beside it at best."""
    return Answer.ADJACENT if expected.beside and answer is Answer.EXACT else answer


def beyond_answer(expected: Expected, comparison: Comparison, sources: Sources) -> Answer:
    if expected.at or (expected.names and not expected.phase):
        return answer_for(expected, comparison, sources)
    first = named_first(comparison)
    if first is None or not same_moment(first, expected) or first.group not in expected.groups:
        return Answer.MISSED
    if expected.function and first.function != expected.function:
        return Answer.MISSED
    if expected.names and first.slot not in expected.names:
        return Answer.MISSED
    if expected.module in ("", "-"):
        return Answer.EXACT if expected.module == "" or not first.module else Answer.MISSED
    if first.module == expected.module or first.module.startswith(f"{expected.module}."):
        return Answer.EXACT
    return Answer.ADJACENT if beside(first.module, expected.module) else Answer.MISSED


def without_explained(comparison: Comparison) -> Comparison:
    """Without the findings of which the comparison itself says that round-off explains them."""
    left = tuple(found for found in comparison.findings if not is_explained(found))
    return replace(comparison, findings=left, first_difference=comparison.first_difference if left else None)


def is_explained(found: Finding) -> bool:
    return found.place.group is Group.WITHIN or found.strength.startswith("inside ")


def beside(named: str, expected: str) -> bool:
    """Whether two modules are of one block: one is around the other, or they share the module around them."""
    around = expected.rpartition(".")[0]
    return bool(named) and bool(around) and (named == around or named.startswith(f"{around}."))


def stands_out(comparison: Comparison) -> bool:
    """Whether anything is claimed to be beyond round-off."""
    return any(found.place.group in CLAIMED_BEYOND for found in comparison.findings)


def claims_beyond(control: Control, comparison: Comparison) -> list[str]:
    """False claims of a control whose bits differ for a benign reason: exits, and what differed before any call."""
    del control
    exits = [
        f"{found.place.group.value} {found.place.module} step {found.place.step} {found.place.phase}"
        for found in comparison.findings
        if found.place.group in CLAIMED_BEYOND
    ]
    return exits + [f"outside {found.name}" for found in comparison.outside if found.step == 0]
