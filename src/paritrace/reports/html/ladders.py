"""Makes the ladder of a page: one mark per rung, and strips by rank and by step (CP-29, SU-10)."""

from paritrace.compare.result import LADDER, Comparison, LadderRow, Mark
from paritrace.reports.html.page import MARK_NAMES, Ladder, MarkCell, Rung, Strip, StripRow
from paritrace.reports.screen_place import AROUND, meanings_of


def ladder(comparison: Comparison, /) -> Ladder:
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
        strips=strips(comparison),
    )


def strips(comparison: Comparison, /) -> tuple[Strip, ...]:
    """Returns the ladder by rank and by step, where there is more than one of them."""
    ranks, steps = comparison.ladder_by_rank, comparison.ladder_by_step
    cells = {mark.value: cell for mark, cell in cells_of(comparison).items()}
    found: list[Strip] = []
    if len(ranks) > 1:
        what = "By rank and mesh coordinate" if any(row.coordinate for row in ranks) else "By rank"
        caption = f"{what}, at step {comparison.ladder_step}"
        rows = tuple(StripRow(_rank(row), _marks(row, cells)) for row in ranks)
        left_out = _left_out(len(ranks), len(comparison.ranks_compared), "ranks")
        found.append(Strip(caption, "rank", LADDER, rows, left_out))
    if len(steps) > 1:
        rows = tuple(
            StripRow(f"{row.step}", _marks(row, cells), current=row.step == comparison.ladder_step) for row in steps
        )
        left_out = _left_out(len(steps), len(comparison.steps_compared), "steps")
        found.append(Strip("By step, over all ranks", "step", LADDER, rows, left_out))
    return tuple(found)


def _rank(row: LadderRow) -> str:
    return f"{row.rank} ({row.coordinate})" if row.coordinate else f"{row.rank}"


def _marks(row: LadderRow, cells: dict[str, MarkCell]) -> tuple[MarkCell, ...]:
    unknown = cells[Mark.UNDETERMINED.value]
    return tuple(cells.get(mark, unknown) for mark in row.marks[: len(LADDER)])


def _left_out(shown: int, total: int, what: str) -> str:
    return f"showing {shown:,} of {total:,} {what}" if total > shown else ""


def cells_of(comparison: Comparison, /) -> dict[Mark, MarkCell]:
    """Returns how each mark is shown in this comparison."""
    meanings = meanings_of(comparison)
    return {mark: MarkCell(mark.value, MARK_NAMES[mark], meanings[mark]) for mark in Mark}
