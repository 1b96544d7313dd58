"""Compares what a round of narrowing captured, and its baseline with repeats of the same program (CP-15, A-08)."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from paritrace.automation.draws_beside import draws_beside
from paritrace.automation.narrow_captures import REPEAT
from paritrace.automation.narrow_records import Asked, Plan, Question, Seen
from paritrace.automation.narrow_sides import AskedSide
from paritrace.automation.narrow_task import BASELINE, CANDIDATE, Narrowing
from paritrace.compare.engine import compare
from paritrace.compare.repeats import earliest, repeats_of
from paritrace.compare.result import Comparison, Repeats
from paritrace.compare.settings import COMPILED, Settings
from paritrace.reports.keeping import Keeping, keep
from paritrace.reports.sources import sources_of
from paritrace.runs.reading import open_run


class Runs(NamedTuple):
    """What a round compares; without a candidate, the baseline with its repeats."""

    baseline: Path
    candidate: Path | None
    repeats: tuple[Path, ...] = ()


def runs_of(task: Narrowing, plan: Plan, seen: Sequence[Seen], *, made: dict[str, Path]) -> Runs:
    """The runs that a round compares: those that it made, or those that there were."""
    base, cand = (_first_run(task, side, seen) for side in (task.baseline, task.candidate))
    match plan.question:
        case Question.REPEAT:
            return Runs(base, None, (made[BASELINE],))
        case Question.STEP:
            return Runs(base, cand)
        case _:
            repeats = tuple(path for name, path in made.items() if name.startswith(REPEAT))
            return Runs(made[BASELINE], made.get(CANDIDATE), repeats)


def _first_run(task: Narrowing, side: AskedSide, seen: Sequence[Seen]) -> Path:
    """A side as it was recorded, or as the first round recorded it."""
    for one in seen:
        if one.round.plan.question is Question.RECORD:
            return task.folder.path / one.round.runs[side.name]
    return side.path


def compared(task: Narrowing, plan: Plan, runs: Runs, directory: Path) -> Comparison:
    """Compare, judged by draws of the baseline where they lie beside it, and keep the result.

    Without a candidate the repeat that parts from the baseline first stands for it.
    """
    settings = _settings(task.asked, plan)
    itself = _among_repeats(runs.baseline, runs.repeats, settings=settings) if runs.repeats else None
    shown = runs.baseline if itself is None else itself.shown
    with open_run(runs.baseline) as base, open_run(runs.candidate or shown) as cand, draws_beside(base) as by:
        found = compare(base, cand, settings, by=None if runs.candidate is None else by)
        result = replace(found.result, repeats=None if itself is None else itself.repeats)
        sources = (*sources_of(base, side=BASELINE), *sources_of(cand, side=CANDIDATE))
        keep(Keeping(result, found.rows, sources, made_by=task.made_by), directory, files=task.files)
    return result


def _settings(asked: Asked, plan: Plan) -> Settings:
    """A finer round looks at its step, and at the next one's begin, which shows what the step wrote."""
    prefixes = (COMPILED,) if asked.compiler else ()
    if plan.question in (Question.RECORD, Question.REPEAT, Question.STEP):
        return Settings(steps=asked.between, strip_prefix=prefixes)
    return Settings(steps=(plan.step, plan.step + 2), strip_prefix=prefixes)


class _AmongRepeats(Struct, frozen=True):
    """`shown`: the repeat that differs from the baseline first; any where none does."""

    repeats: Repeats
    shown: Path


def _among_repeats(baseline: Path, repeats: Sequence[Path], *, settings: Settings) -> _AmongRepeats:
    """Compare a baseline with each of its repeats, at least one (A-08).

    Raises:
        EvidenceError, HostError: as `engine.compare` says.
    """
    found = [_against(baseline, repeat, settings) for repeat in repeats]
    return _AmongRepeats(repeats_of(found), repeats[earliest(found)])


def _against(baseline: Path, repeat: Path, settings: Settings) -> Comparison:
    with open_run(baseline) as base, open_run(repeat) as again:
        return compare(base, again, settings).result
