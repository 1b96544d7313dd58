"""Makes the page of a comparison from the same rules and words as the terminal's first screen (CP-29, SU-10)."""

import shlex
from collections.abc import Mapping

from msgspec import Struct

from paritrace.compare.result import Comparison, Difference, Finding
from paritrace.evidence.spans import ranges
from paritrace.reports import (
    headline,
    next_commands,
    screen_causes,
    screen_collectives,
    screen_folds,
    screen_place,
    screen_policy,
    screen_resume,
    screen_review,
    screen_rows,
)
from paritrace.reports.behind_causes import outside_text
from paritrace.reports.html.charting import chart
from paritrace.reports.html.ladders import ladder
from paritrace.reports.html.page import ChangeRow, Command, Extra, Figure, FindingPart, Place, RunPart
from paritrace.reports.html.pages import ComparisonPage, FirstDifference
from paritrace.reports.html.places import Texts, place
from paritrace.reports.html.unseen import not_seen
from paritrace.reports.layout import Section
from paritrace.reports.wording import figure

MOST_FINDINGS = 100
MOST_CHANGES = 200
MOST_LINES = 60  # of a list of statements
WIDEST_COMMAND = 400
OF_A_RESULT = frozenset({"explain", "why-not", "judge"})
COUNTS = {
    "calls_baseline": "calls of the baseline",
    "calls_candidate": "calls of the candidate",
    "paired": "pairs",
    "ok": "agree",
    "different": "differ",
    "incomparable": "not comparable",
    "undetermined_baseline": "undetermined, baseline",
    "undetermined_candidate": "undetermined, candidate",
    "reordered": "in another order",
}


class Known(Struct, frozen=True):
    """What a page says beside the comparison itself: where it is kept, what goes on from it costs, sources at hand."""

    directory: str = ""
    found_without_name: bool = False
    judge_seconds: int | None = None
    narrow_seconds: int | None = None
    texts: Mapping[tuple[str, str], str] = {}


NOTHING_MORE = Known()


def comparison_page(comparison: Comparison, /, known: Known = NOTHING_MORE) -> ComparisonPage:
    """Returns every word and number of the page; nothing is judged here that the first screen does not say."""
    # longer than 40 lines: one line for each field of the page, and nothing else
    anchor, sentence, strength = headline.statement(comparison)
    leading = comparison.findings[0].place if comparison.findings else comparison.first_difference
    consequences = comparison.findings[0].consequences if comparison.findings else 0
    return ComparisonPage(
        anchor=anchor,
        sentence=sentence,
        strength=strength,
        runs=(_run("baseline", comparison), _run("candidate", comparison)),
        ladder=ladder(comparison),
        first=_first(comparison, known.texts),
        leading=None if leading is None else _place(comparison, leading, known.texts),
        findings=tuple(_finding(found, known.texts) for found in comparison.findings[:MOST_FINDINGS]),
        findings_left_out=max(0, len(comparison.findings) - MOST_FINDINGS),
        consequences=screen_place.consequences_text(consequences) if consequences else "",
        changed=tuple(
            ChangeRow(one.kind, one.name, one.baseline or screen_causes.NOTHING, one.candidate or screen_causes.NOTHING)
            for one in comparison.changed[:MOST_CHANGES]
        ),
        changed_left_out=max(0, len(comparison.changed) - MOST_CHANGES),
        changed_said=tuple(screen_causes.said_of_changes(comparison)),
        outside=tuple(outside_text(state) for state in comparison.outside[:MOST_LINES]),
        one_sided=screen_causes.one_sided(comparison).lines[:MOST_LINES],
        extras=_extras(comparison),
        counts=tuple(
            Figure(f"counts.{name}", label, getattr(comparison.counts, name)) for name, label in COUNTS.items()
        ),
        scope=_scope(comparison),
        not_seen=not_seen(comparison),
        commands=_commands(comparison, known),
        policy=" ".join(screen_policy.section(comparison).lines),
        kept=known.directory,
        chart=chart(comparison),
    )


def _run(side: str, comparison: Comparison) -> RunPart:
    run = comparison.baseline if side == "baseline" else comparison.candidate
    return RunPart(side, run.run_id, run.path, run.digest)


def _place(comparison: Comparison, of: Difference, texts: Texts) -> Place:
    return place(of, ranks=screen_place.ranks_of(comparison, of), texts=texts)


def _first(comparison: Comparison, texts: Texts) -> FirstDifference:
    first = comparison.first_difference
    said = screen_place.first_difference(comparison).lines
    if first is None:
        return FirstDifference(said)
    others = screen_place.other_ranks(comparison, first)
    return FirstDifference((*said[:1], *((others,) if others else ())), _place(comparison, first, texts))


def _finding(found: Finding, texts: Texts) -> FindingPart:
    return FindingPart(
        anchor=found.id,
        sentence=found.sentence,
        strength=found.strength,
        place=place(found.place, ranks=found.ranks, texts=texts),
        measured="" if found.measured is None else figure(found.measured),
        expected="" if found.expected is None else figure(found.expected),
        ratio="" if found.ratio is None else f"{found.ratio:,.2f}",
        consequences=screen_place.consequences_text(found.consequences) if found.consequences else "",
    )


def _scope(comparison: Comparison) -> str:
    return (
        f"rank {ranges(comparison.ranks_compared) or 'none'}, step {ranges(comparison.steps_compared) or 'none'}, "
        f"levels {', '.join(comparison.levels_compared) or 'none'}"
    )


def _extras(comparison: Comparison) -> tuple[Extra, ...]:
    made: tuple[tuple[str, Section], ...] = (
        ("Resume", screen_resume.section(comparison)),
        ("By fold", screen_folds.section(comparison)),
        ("Ratios", screen_folds.ratios(comparison)),
        ("Rows of tokens", screen_rows.section(comparison)),
        ("What is known around it", screen_place.settled(comparison)),
        ("Collectives", screen_collectives.section(comparison)),
        ("Review", screen_review.section(comparison)),
    )
    return tuple(Extra(part.anchor, title, part.lines[:MOST_LINES]) for title, part in made if part.lines)


def _commands(comparison: Comparison, known: Known) -> tuple[Command, ...]:
    found = next_commands.commands_of(
        comparison,
        kept=bool(known.directory),
        costs=(known.judge_seconds, known.narrow_seconds),
        columns=WIDEST_COMMAND,
    )
    return tuple(Command(_of_result(one.command, known), one.purpose, one.cost) for one in found)


def _of_result(command: str, known: Known) -> str:
    """A command that looks into the result names its folder, where it would not find it without."""
    program, verb, *rest = command.split(" ")
    if verb not in OF_A_RESULT or known.found_without_name:
        return command
    return " ".join((program, verb, shlex.quote(known.directory), *rest))
