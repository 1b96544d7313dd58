"""What the tests of the black box read of a run: triggers, the steps of calls, levels, gaps."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from paritrace.evidence.blackbox import BlackBox, Trigger
from paritrace.evidence.calls import Call, Context, Detail, Function, GapMark, Level, LevelMark, StepMark
from paritrace.evidence.journal import Loss
from paritrace.runs.reading import Run, open_run


@dataclass
class Seen:
    """One session. `steps`: level -> steps that have calls of it; `after`: the records behind the first trigger."""

    boxes: list[BlackBox] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)
    levels: list[LevelMark] = field(default_factory=list)
    steps: dict[Level, set[int]] = field(default_factory=dict)
    marks: list[StepMark] = field(default_factory=list)
    gaps: Counter[str] = field(default_factory=Counter)
    calls: list[Call] = field(default_factory=list)
    details: list[Detail] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    num_bytes: int = 0


def seen_in(run_dir: Path, session_id: str = "rank-0") -> Seen:
    with open_run(run_dir) as run:
        found = seen_of(run, session_id)
    found.num_bytes = (run_dir / "sessions" / session_id / "calls.jsonl").stat().st_size
    return found


def seen_of(run: Run, session_id: str) -> Seen:
    found = Seen()
    contexts: dict[int, int] = {}
    functions: dict[int, Level] = {}
    for record in run.records(session_id):
        match record:
            case BlackBox():
                found.boxes.append(record)
            case Trigger():
                found.triggers.append(record)
            case LevelMark():
                found.levels.append(record)
            case StepMark():
                found.marks.append(record)
            case GapMark():
                found.gaps[record.reason] += record.count
            case Context():
                contexts[record.id] = record.step
            case Function():
                functions[record.id] = record.level
            case Call():
                found.calls.append(record)
                found.steps.setdefault(functions[record.function], set()).add(contexts[record.context])
            case Detail():
                found.details.append(record)
            case Loss():
                found.losses.append(record)
            case _:
                pass
    return found
