"""Finds the call where two runs part, by capturing both again, finer and finer, where they differ (CP-15)."""

import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from paritrace.automation.narrow_again import captured_again, require_ready
from paritrace.automation.narrow_captures import Capture, captures_of
from paritrace.automation.narrow_comparing import compared, runs_of
from paritrace.automation.narrow_compiler import compiler_round
from paritrace.automation.narrow_folder import COMPARISON, size_of
from paritrace.automation.narrow_records import Ended, Narrowed, Plan, Question, Round, Seen
from paritrace.automation.narrow_result import narrowed
from paritrace.automation.narrow_rules import by_size, next_plan
from paritrace.automation.narrow_task import Narrowing
from paritrace.automation.narrow_words import answer_of, question_of
from paritrace.automation.rerun import Rerun, require_run
from paritrace.errors import HostError, Outcome
from paritrace.files import LOCAL
from paritrace.runs.documents import read_envelope
from paritrace.runs.envelope import NOT_LIFTED, REFUSED


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
        require_ready(side, files=task.files)
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
    for wanted in captures_of(task, plan):
        telling.stage(f"round {number}: {question_of(plan)} capturing the {wanted.name.replace('-', ' ')}")
        made[wanted.name] = _captured(task, wanted, folder / wanted.name)
    telling.stage(f"round {number}: comparing")
    runs = runs_of(task, plan, seen, made={name: one.run for name, one in made.items()})
    result = compared(task, plan, runs, folder / COMPARISON)
    ended = Round(
        number=number,
        plan=plan,
        question=question_of(plan),
        answer=answer_of(plan, by_size(result, task.asked.upcast)),
        commands=tuple(shlex.join(one.command) for one in made.values()),
        seconds=round(time.monotonic() - started, 3),
        num_bytes=size_of(folder, files=task.files),
        runs={name: str(one.run.relative_to(task.folder.path)) for name, one in made.items()},
        comparison=str((folder / COMPARISON).relative_to(task.folder.path)),
        remarks=_remarks(made),
    )
    task.folder.keep_round(folder, ended)
    return task.folder.seen(ended)


def _captured(task: Narrowing, wanted: Capture, output: Path) -> Rerun:
    done = captured_again(wanted, output=output, between=task.asked.between, deadline_seconds=task.deadline_seconds)
    require_run(done, f"the {wanted.side.name}", files=task.files)
    if done.status < 0:
        raise HostError(
            f"the {wanted.side.name} was started again and a signal ended it (status {done.status})",
            code="rerun_failed",
            fix=f"read what it printed: {done.log}",
            outcome=Outcome.FAILED,
        )
    _require_lifted(done, wanted.side.name, upcast=task.asked.upcast)
    return done


def _require_lifted(done: Rerun, side: str, *, upcast: str) -> None:
    refused = [told.removeprefix(REFUSED).strip() for told in _kept(done) if told.startswith(REFUSED)]
    if refused:
        raise HostError(
            f"the {side} cannot run in {upcast}: {refused[0]} has cut its parameters into shards",
            code="not_lifted",
            fix="narrow without --upcast, or runs on one rank or under DistributedDataParallel",
            outcome=Outcome.FAILED,
        )


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
