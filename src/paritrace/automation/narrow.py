"""Finds the call where two runs part, by capturing both again, finer and finer, where they differ (CP-15)."""

import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from paritrace.automation.draws_beside import draws_beside
from paritrace.automation.narrow_captures import draws_option, options_for
from paritrace.automation.narrow_compiler import compiler_round
from paritrace.automation.narrow_folder import COMPARISON, size_of
from paritrace.automation.narrow_records import Asked, Ended, Narrowed, Plan, Question, Round, Seen
from paritrace.automation.narrow_result import narrowed
from paritrace.automation.narrow_rules import by_size, next_plan
from paritrace.automation.narrow_sides import AskedSide
from paritrace.automation.narrow_task import BASELINE, CANDIDATE, Narrowing
from paritrace.automation.narrow_words import answer_of, question_of
from paritrace.automation.rerun import Rerun, require_same_sources, rerun
from paritrace.compare.engine import compare
from paritrace.compare.rows import Compared
from paritrace.compare.settings import Settings
from paritrace.errors import HostError, Outcome
from paritrace.files import LOCAL
from paritrace.reports.keeping import Keeping, keep
from paritrace.reports.sources import sources_of
from paritrace.runs.documents import read_envelope
from paritrace.runs.envelope import ENVELOPE_NAME, NOT_LIFTED
from paritrace.runs.reading import open_run
from paritrace.runs.request import require_whole


class Telling(Struct, frozen=True):
    """Whom the narrowing tells of its progress: `stage` what it does now, `ended` each round."""

    stage: Callable[[str], None]
    ended: Callable[[Round], None]


def narrow(task: Narrowing, telling: Telling) -> Narrowed:
    """Go on until a single call or region stands, or the evidence ends; rounds that ended before are taken as they are.

    Raises:
        RequestError: Refused: `arguments_unknown`, `launcher_unknown`, `another_narrowing`.
        EvidenceError: Refused, `source_changed`, or a run cannot be read.
        HostError: Refused: `narrowing_runs`. Failed: `rerun_failed`, `child_too_slow`; rounds that ended stay.
    """
    for side in (task.baseline, task.candidate):
        require_whole(side.request)
        require_same_sources(side.request, files=task.files)
    with task.folder.open_for(task.asked):
        seen = task.folder.rounds()
        for one in seen:
            telling.ended(one.round)
        while not isinstance(plan := next_plan(task.asked, seen), Ended):
            seen.append(_round(task, plan, seen, telling=telling))
            telling.ended(seen[-1].round)
        result = narrowed(
            seen,
            plan,
            sides=(str(task.baseline.path), str(task.candidate.path)),
            directory=str(task.folder.path),
            cut_off=task.folder.cut_off(),
        )
        task.folder.keep_result(result)
    return result


def _round(task: Narrowing, plan: Plan, seen: Sequence[Seen], *, telling: Telling) -> Seen:
    """Capture what the plan asks for, compare, keep."""
    number = len(seen) + 1
    folder = task.folder.new_round(number)
    if plan.question is Question.COMPILER:
        telling.stage(f"round {number}: {question_of(plan)} torch's bisector")
        return compiler_round(task, plan, seen[-1].round, folder)
    started = time.monotonic()
    made: dict[str, Rerun] = {}
    for side, options in _captures(task, plan):
        telling.stage(f"round {number}: {question_of(plan)} capturing the {side.name}")
        made[side.name] = _captured(task, side, folder / side.name, options)
    telling.stage(f"round {number}: comparing")
    runs = _runs(task, plan, seen, made={name: one.run for name, one in made.items()})
    result = _compared(task, plan, runs, folder / COMPARISON)
    ended = Round(
        number=number,
        plan=plan,
        question=question_of(plan),
        answer=answer_of(plan, by_size(result.result, task.asked.upcast)),
        commands=tuple(shlex.join(one.command) for one in made.values()),
        seconds=round(time.monotonic() - started, 3),
        num_bytes=size_of(folder, files=task.files),
        runs={name: str(one.run.relative_to(task.folder.path)) for name, one in made.items()},
        comparison=str((folder / COMPARISON).relative_to(task.folder.path)),
        remarks=_remarks(made),
    )
    task.folder.keep_round(folder, ended)
    return task.folder.seen(ended)


def _captures(task: Narrowing, plan: Plan) -> list[tuple[AskedSide, tuple[str, ...]]]:
    options = options_for(plan, upcast=task.asked.upcast)
    if plan.question is Question.STEP:
        return []
    baseline = (task.baseline, (*options, *draws_option(plan)))
    return [baseline] if plan.question is Question.REPEAT else [baseline, (task.candidate, options)]


def _captured(task: Narrowing, side: AskedSide, output: Path, options: tuple[str, ...]) -> Rerun:
    done = rerun(side.request, output=output, options=options, deadline_seconds=task.deadline_seconds)
    if done.status < 0 or not task.files.exists(output / ENVELOPE_NAME):
        raise HostError(
            f"the {side.name} was started again and left no run (status {done.status})",
            code="rerun_failed",
            fix=f"read what it printed: {done.log}",
            outcome=Outcome.FAILED,
        )
    return done


def _runs(task: Narrowing, plan: Plan, seen: Sequence[Seen], *, made: dict[str, Path]) -> tuple[Path, Path]:
    """The two runs that a round compares."""
    base, cand = (_first_run(task, side, seen) for side in (task.baseline, task.candidate))
    match plan.question:
        case Question.REPEAT:
            return base, made[BASELINE]
        case Question.STEP:
            return base, cand
        case _:
            return made[BASELINE], made[CANDIDATE]


def _first_run(task: Narrowing, side: AskedSide, seen: Sequence[Seen]) -> Path:
    """A side as it was recorded, or as the first round recorded it."""
    for one in seen:
        if one.round.plan.question is Question.RECORD:
            return task.folder.path / one.round.runs[side.name]
    return side.path


def _compared(task: Narrowing, plan: Plan, runs: tuple[Path, Path], directory: Path) -> Compared:
    """Compare, judged by draws of the baseline where they lie beside it, and keep the result."""
    with open_run(runs[0]) as base, open_run(runs[1]) as cand, draws_beside(base) as by:
        judge = None if plan.question is Question.REPEAT else by
        found = compare(base, cand, _settings(task.asked, plan), by=judge)
        sources = (*sources_of(base, side=BASELINE), *sources_of(cand, side=CANDIDATE))
        keep(Keeping(found.result, found.rows, sources, made_by=task.made_by), directory, files=task.files)
    return found


def _settings(asked: Asked, plan: Plan) -> Settings:
    """A finer round looks at its step, and at the next one's begin, which shows what the step wrote."""
    if plan.question in (Question.RECORD, Question.REPEAT, Question.STEP):
        return Settings(steps=asked.between)
    return Settings(steps=(plan.step, plan.step + 2))


def _remarks(made: dict[str, Rerun]) -> tuple[str, ...]:
    told = [f"the {name} ended with status {one.status}" for name, one in made.items() if one.status]
    absent = sorted({name for one in made.values() for name in one.absent_names})
    told += [f"set then, and not now: {', '.join(absent)}"] if absent else []
    return (*told, *(f"the {name} was not lifted whole: {what}" for name, one in made.items() for what in _kept(one)))


def _kept(done: Rerun) -> list[str]:
    """What a run in a wider precision says that it could not lift, rank by rank."""
    envelope = read_envelope(done.run, files=LOCAL)
    rows = () if envelope is None else envelope.sessions
    return list(dict.fromkeys(row.metadata[NOT_LIFTED] for row in rows if NOT_LIFTED in row.metadata))
