"""The screen of many tasks: where the trajectories of each part, those whose outcomes differ first (AT-23)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from paritrace.attempts.trace_matching import MatchedTasks
from paritrace.reports.harmless import cut, harmless, shorten
from paritrace.reports.layout import CONTENT, HEIGHT, Section, fit, next_step, paragraph
from paritrace.reports.trajectories.document import Held
from paritrace.reports.trajectories.words import AFTER, brief, kind, plural

TASK, PLACE, OUTCOME, HOW = 22, 9, 10, 20


def overview(names: tuple[str, str], matched: MatchedTasks, found: Sequence[Held], *, next_line: str = "") -> str:
    """Returns the screen of all tasks that both sides have trajectories of."""
    sections = [
        Section("A", (shorten(names[0], width=CONTENT),)),
        Section("B", (shorten(names[1], width=CONTENT),)),
        Section("tasks", tuple(_rows(found)), keep=4, spaced=True),
        Section("not_seen", tuple(_not_seen(matched)), keep=1, most=4, spaced=True),
    ]
    title = paragraph(_title(found), most=2)
    following = next_step(next_line)
    body = fit(sections, height=HEIGHT - len(title) - len(following), closing="more tasks: --json lists them all")
    return "\n".join([*title, *body, *following]) + "\n"


def _title(found: Sequence[Held]) -> str:
    if not found:
        return "no task has a trajectory on both sides"
    kinds = Counter(kind(one.task.a, parting) for one in found if (parting := one.divergence.parting) is not None)
    parted = kinds.total()
    named = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    return (
        f"the trajectories of {parted:,} of {plural(len(found), 'task')} part"
        + (f" ({named})" if named else "")
        + f"; {len(found) - parted:,} {'takes' if len(found) - parted == 1 else 'take'} the same path"
    )


def _rows(found: Sequence[Held]) -> Iterable[str]:
    if not found:
        return
    outcomes = f"{'outcome A':{OUTCOME}}   {'B':{OUTCOME}}"
    yield f"{'task':{TASK}} {'parts at':{PLACE}} {'how':{HOW}} {outcomes} rejoin"
    for one in sorted(found, key=_order):
        yield _row(one)


def _order(one: Held) -> tuple[bool, bool, str]:
    return one.task.a.outcome == one.task.b.outcome, one.divergence.parting is None, one.task.a.task_id


def _row(one: Held) -> str:
    a, b, parting = one.task.a, one.task.b, one.divergence.parting
    place = "-" if parting is None else f"{one.divergence.before + 1} of {max(len(a.steps), len(b.steps))}"
    outcomes = f"{_outcome(a.outcome)} | {_outcome(b.outcome)}"
    said = cut(brief(a, one.divergence), width=HOW)
    task = shorten(a.task_id, width=TASK)
    return f"{task:{TASK}} {place:{PLACE}} {said:{HOW}} {outcomes} {AFTER[one.divergence.recovery]}"


def _outcome(outcome: str) -> str:
    return f"{shorten(outcome, width=OUTCOME) if outcome else '-':{OUTCOME}}"


def _not_seen(matched: MatchedTasks) -> Iterable[str]:
    for said, tasks in (
        ("A alone has", matched.only_a),
        ("B alone has", matched.only_b),
        ("no steps were recorded of", matched.without_steps),
    ):
        if tasks:
            named = ", ".join(harmless(task) for task in tasks)
            yield f"{said} {plural(len(tasks), 'task')}: {named}"
