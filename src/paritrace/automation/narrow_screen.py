"""The screen of `narrow`: the call that stands with the source of both sides, and what each round cost (CP-15)."""

from paritrace.automation.narrow_records import Ended, Narrowed, Question, Round
from paritrace.automation.narrow_result import why
from paritrace.automation.narrow_words import operator_in_words
from paritrace.compare.result import Comparison
from paritrace.reports import screen_place, screen_repeats
from paritrace.reports.harmless import shorten, width_of
from paritrace.reports.layout import CONTENT, Section, fit, paragraph

MOST_OTHERS = 3
BRIEFLY = {
    Question.RECORD: "which step?",
    Question.REPEAT: "repeatable?",
    Question.REPEAT_CALL: "where not?",
    Question.STEP: "which step?",
    Question.MODULES: "which module?",
    Question.OPERATORS: "which operator?",
    Question.EVERYTHING: "in whole step?",
    Question.COMPILER: "which part?",
}
BRIEF_COLUMNS = max(map(len, BRIEFLY.values()))
MEGA = 1e6


def narrow_screen(result: Narrowed, last: Comparison) -> str:
    """The screen as plain text, at most 34 lines. `last` is the comparison that the result speaks of."""
    sections = (
        Section(
            anchor="result", lines=(*paragraph(result.sentence, most=2), *paragraph(result.strength, most=4)), keep=3
        ),
        Section(anchor="stopped", lines=paragraph(why(result), most=2), keep=1) if why(result) else _operator(result),
        _repeats(result),
        screen_place.where(last),
        screen_place.size(last),
        Section(anchor="also", lines=_others(result), spaced=True),
        Section(anchor="rounds", lines=_rounds(result), keep=len(result.rounds) + 1, spaced=True),
        Section(anchor="further", lines=tuple(line for text in result.further for line in paragraph(text, most=2))),
        Section(anchor="said", lines=tuple(line for text in result.remarks for line in paragraph(text, most=2))),
        Section(anchor="next", lines=_next(result), spaced=True),
        Section(anchor="kept", lines=(shorten(result.directory, width=CONTENT),)),
    )
    return "\n".join(fit(sections, closing="more: --json")) + "\n"


def _operator(result: Narrowed) -> Section:
    place = result.place
    last = result.rounds[-1]
    if last.plan.question is Question.COMPILER:
        return Section(anchor="compiler", lines=paragraph(last.answer, most=3), keep=1, spaced=True)
    if place is None:
        return Section(anchor="operator", lines=())
    where = f"step {place.step}, rank {place.rank}"
    return Section(
        anchor="operator", lines=(shorten(f"{operator_in_words(place)}, {where}", width=CONTENT),), spaced=True
    )


def _repeats(result: Narrowed) -> Section:
    """The place from which on the baseline does not repeat itself, where that ended the narrowing (A-08)."""
    own = result.repeats
    if own is None or result.ended is not Ended.NOT_REPEATABLE:
        return Section(anchor="repeats", lines=())
    return Section(anchor="repeats", lines=paragraph(screen_repeats.sentence(own), most=2), keep=2, spaced=True)


def _others(result: Narrowed) -> tuple[str, ...]:
    told = [shorten(one.sentence, width=CONTENT) for one in result.others[:MOST_OTHERS]]
    more = len(result.others) - MOST_OTHERS
    return (*told, f"and {more} more: --json") if more > 0 else tuple(told)


def _rounds(result: Narrowed) -> tuple[str, ...]:
    lines = [round_line(one) for one in result.rounds]
    total = f"{result.seconds:.0f} s, {result.num_bytes / MEGA:.1f} MB in all"
    return (*lines, total)


def round_line(ended: Round) -> str:
    """One round: number, what it asked and found, what it cost."""
    cost = f"{ended.seconds:.0f} s, {ended.num_bytes / MEGA:.1f} MB"
    room = CONTENT - width_of(cost) - 2
    text = shorten(f"{ended.number} {BRIEFLY[ended.plan.question]:{BRIEF_COLUMNS}} {ended.answer}", width=room)
    return text + " " * (room - width_of(text)) + "  " + cost


def _next(result: Narrowed) -> tuple[str, ...]:
    last = result.rounds[-1]
    return (shorten(f"paritrace explain {result.directory}/{last.comparison} F1   records and files", width=CONTENT),)
