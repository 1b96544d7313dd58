"""The round of a narrowing in which torch's bisector looks for the part of the compiler (CP-15)."""

import shlex
import time
from pathlib import Path

from paritrace.automation.compiler_bisection import bisect_compiler, part_in_words
from paritrace.automation.compiler_trial import Trial
from paritrace.automation.narrow_captures import options_for
from paritrace.automation.narrow_folder import size_of
from paritrace.automation.narrow_records import Plan, Question, Round, Seen
from paritrace.automation.narrow_sides import request_of_side
from paritrace.automation.narrow_task import BASELINE, Narrowing
from paritrace.automation.narrow_words import question_of


def compiler_round(task: Narrowing, plan: Plan, before: Round, folder: Path) -> Seen:
    """Bisect, each trial held against the baseline of the round before; the comparison stays that round's."""
    started = time.monotonic()
    trial = Trial(
        request=request_of_side(task.candidate),
        baseline=str((task.folder.path / before.runs[BASELINE]).resolve()),
        step=plan.step,
        options=options_for(Plan(Question.MODULES, plan.step), upcast=task.asked.upcast).arguments,
        deadline_seconds=task.deadline_seconds,
    )
    found = bisect_compiler(folder, trial, deadline_seconds=task.deadline_seconds, files=task.files)
    ended = Round(
        number=before.number + 1,
        plan=plan,
        question=question_of(plan),
        answer=part_in_words(found),
        commands=(shlex.join(found.command),),
        seconds=round(time.monotonic() - started, 3),
        num_bytes=size_of(folder, files=task.files),
        runs={},
        comparison=before.comparison,
        remarks=() if before.plan.draws else ("bits decided what is good: with --perturb 8 it would be draws",),
    )
    task.folder.keep_round(folder, ended)
    return task.folder.seen(ended)
