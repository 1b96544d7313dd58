"""Joins what folds say to a comparison: loads the ranks of both runs again where they are unlike, marks the ladder."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from paritrace.compare.folds import first_step, fold, rungs, unlike
from paritrace.compare.folds_apart import Apart
from paritrace.compare.folds_ratios import ratio_facts
from paritrace.compare.folds_result import Folds
from paritrace.compare.load import Recorded, load
from paritrace.compare.map_uses import Uses, declared_maps, map_uses
from paritrace.compare.rank_summary import RankSummary
from paritrace.compare.result import Comparison, Mark
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import Level
from paritrace.runs.reading import Run


def with_folds(
    comparison: Comparison, runs: tuple[Run, Run], *, ranks: Sequence[RankSummary], settings: Settings
) -> Comparison:
    """The comparison with its folds and ratios; rungs that single ranks cannot decide are decided by folds."""
    told = replace(comparison, ratios=ratio_facts([rank.figures for rank in ranks]))
    found = _folded(runs, ranks=ranks, settings=settings)
    if found is None:
        return told
    folds, uses = found
    step = first_step(folds) if comparison.first_difference is None else None
    at = comparison.ladder_step if step is None else step
    marks = rungs(folds, step=at, by_calls=all(rank.apart is not Apart.ALL for rank in ranks))
    ladder = {rung: _joined(mark, marks.get(rung)) for rung, mark in comparison.ladder.items()}
    return replace(told, folds=folds, ladder=ladder, ladder_step=at, maps=declared_maps(settings, [uses]))


def _folded(runs: tuple[Run, Run], *, ranks: Sequence[RankSummary], settings: Settings) -> tuple[Folds, Uses] | None:
    """Relate the runs by fold where their layouts are unlike, or the user declared one; and what maps name then."""
    if ranks and all(rank.apart is Apart.NO for rank in ranks) and not settings.dims:
        return None
    sides = [_loaded(run, settings) for run in runs]
    if not all(sides):
        return None
    why = unlike(sides[0], sides[1], settings=settings) or (("declared",) if settings.dims else ())
    folds = fold(sides[0], sides[1], settings=settings, why=why) if why else None
    return None if folds is None else (folds, map_uses(sides[0], sides[1], settings=settings))


def _loaded(run: Run, settings: Settings) -> list[Recorded]:
    """All ranks that are compared. Of their calls only those of modules are kept: the others do not fold."""
    wanted = [view for view in run.sessions if settings.ranks is None or view.rank in settings.ranks]
    return [without_operators(load(run, view, settings=settings)) for view in wanted]


def without_operators(recorded: Recorded) -> Recorded:
    """What one session recorded, with the calls of modules only, in place."""
    modules = {number for number, function in recorded.functions.items() if function.level is Level.MODULE}
    recorded.calls = recorded.calls.where(np.isin(recorded.calls.column("function"), sorted(modules)))
    return recorded


def _joined(mark: Mark, by_fold: Mark | None) -> Mark:
    """A difference that the ranks show stands; otherwise the fold decides what it saw."""
    return mark if by_fold is None or mark in (Mark.BEYOND, Mark.NOT_REACHED) else by_fold
