"""Comparisons and rounds that the tests of narrowing decide on: constructed, as the engine would return them."""

from msgspec.structs import replace

from paritrace.automation.narrow_records import Asked, Plan, Question, Round, Seen
from paritrace.compare.result import Comparison, Difference, Finding, Group, Mark
from tests.reports.comparisons import agreeing, difference, ladder

ASKED = Asked(baseline="a" * 64, candidate="b" * 64, recorded=True)
MODULE = "encoder.layers.2.self_attn"


def place(**changes: object) -> Difference:
    return replace(difference(), **{"step": 1, "module": MODULE} | changes)


def finding(at: Difference, *, number: int = 1, sentence: str = "The runs part.") -> Finding:
    return Finding(id=f"F{number}", sentence=sentence, strength="bits only", place=at)


def parted(at: Difference, *others: Difference) -> Comparison:
    """Runs that part at one place, and in others."""
    found = tuple(finding(one, number=number) for number, one in enumerate((at, *others), 1))
    origins = tuple(one for one in (at, *others) if one.group is Group.ORIGINATES)
    return replace(
        agreeing(), findings=found, first_difference=at, origins=origins, ladder=ladder(loss=Mark.BEYOND), ladder_step=1
    )


def seen(question: Question, comparison: Comparison, *, number: int = 1, plan: Plan | None = None) -> Seen:
    ended = Round(
        number=number,
        plan=plan or Plan(question, 1),
        question="which?",
        answer="this",
        commands=(),
        seconds=1.5,
        num_bytes=10**6,
        runs={},
        comparison=f"round-{number}/comparison",
    )
    return Seen(ended, comparison)
