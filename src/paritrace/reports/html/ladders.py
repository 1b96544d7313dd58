"""Makes the ladder of a page: one mark per rung, and strips by rank and by step (CP-29, SU-10)."""

from paritrace.compare.result import LADDER, Comparison, Mark
from paritrace.reports.html.page import MARK_NAMES, Ladder, MarkCell, Rung, Strip
from paritrace.reports.screen_place import AROUND, meanings_of


def ladder(comparison: Comparison, /, *, strips: tuple[Strip, ...] = ()) -> Ladder:
    """Returns the rungs with their meaning in this comparison; a rung that is not there is undetermined."""
    cells = cells_of(comparison)
    marks = {rung: comparison.ladder.get(rung, Mark.UNDETERMINED) for rung in LADDER}
    rungs = [Rung(rung, cells[mark], f"ladder.{rung}") for rung, mark in marks.items()]
    used = {*marks.values(), Mark.UNDETERMINED}
    return Ladder(
        step=comparison.ladder_step,
        around=tuple(rung for rung in rungs if rung.name in AROUND),
        within=tuple(rung for rung in rungs if rung.name not in AROUND),
        legend=tuple(cells[mark] for mark in Mark if mark in used),
        strips=strips,
    )


def cells_of(comparison: Comparison, /) -> dict[Mark, MarkCell]:
    """Returns how each mark is shown in this comparison."""
    meanings = meanings_of(comparison)
    return {mark: MarkCell(mark.value, MARK_NAMES[mark], meanings[mark]) for mark in Mark}
