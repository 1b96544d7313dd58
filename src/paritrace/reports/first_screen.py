"""The first screen of a comparison: what a person sees first, in at most 34 lines of 100 columns (CP-29)."""

from msgspec import Struct

from paritrace.compare.result import Comparison
from paritrace.reports import (
    headline,
    next_commands,
    screen_causes,
    screen_collectives,
    screen_coverage,
    screen_folds,
    screen_place,
    screen_policy,
    screen_repeats,
    screen_resume,
    screen_review,
    screen_rows,
)
from paritrace.reports.harmless import shorten
from paritrace.reports.layout import CONTENT, Section, fit


class Kept(Struct, frozen=True):
    """Where the result was kept; `found_without_name`: explain and why-not find it when RESULT is left out.

    `judge_seconds`: what judging the first finding takes at most; None where it cannot be judged.
    `narrow_seconds`: what narrowing both runs takes; None where they cannot be run again.
    """

    directory: str
    found_without_name: bool = True
    judge_seconds: int | None = None
    narrow_seconds: int | None = None


def first_screen(comparison: Comparison, /, *, kept: Kept | None = None) -> str:
    """Returns the screen as plain text; every label in brackets can be given to `paritrace explain`.

    Args:
        comparison: the result to show.
        kept: where its files lie, None when nothing was kept.
    """
    sections = (
        headline.section(comparison),
        screen_place.ladder(comparison),
        screen_repeats.section(comparison),
        screen_resume.section(comparison),
        screen_folds.section(comparison),
        screen_folds.ratios(comparison),
        screen_rows.section(comparison),
        screen_place.first_difference(comparison),
        screen_place.where(comparison),
        screen_place.size(comparison),
        screen_place.settled(comparison),
        screen_causes.changed(comparison),
        screen_causes.outside(comparison),
        screen_causes.one_sided(comparison),
        screen_collectives.section(comparison),
        screen_causes.other_findings(comparison),
        screen_coverage.compared(comparison),
        screen_coverage.not_seen(comparison),
        _next(comparison, kept),
        screen_review.section(comparison),
        screen_policy.section(comparison),
        _kept(kept),
    )
    return "\n".join(fit(sections)) + "\n"


def _next(comparison: Comparison, kept: Kept | None) -> Section:
    narrow = None if kept is None else kept.narrow_seconds
    if kept is None or not kept.found_without_name:
        return next_commands.section(comparison, kept=False, narrow_seconds=narrow)
    return next_commands.section(comparison, kept=True, judge_seconds=kept.judge_seconds, narrow_seconds=narrow)


def _kept(kept: Kept | None) -> Section:
    if kept is None:
        return Section(anchor="kept", lines=())
    return Section(anchor="kept", lines=(shorten(kept.directory, width=CONTENT),))
