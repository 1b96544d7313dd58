"""Which trajectory of one side is held against which of the other: by task, the first attempt of each; pure (AT-23)."""

from collections.abc import Iterable

from msgspec import Struct

from paritrace.attempts.traces import Trace


class MatchedTask(Struct, frozen=True):
    """Two trajectories of one task, and of how many attempts on each side these are the ones that were taken."""

    a: Trace
    b: Trace
    num_a: int
    num_b: int


class MatchedTasks(Struct, frozen=True):
    """Everything that both sides have, and what only one has; nothing is dropped silently (AT-10).

    `without_steps`: tasks whose chosen attempt recorded no step on one side or on both.
    """

    tasks: tuple[MatchedTask, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    without_steps: tuple[str, ...]


class Chosen(Struct, frozen=True):
    """What the user asked for; "" is: whatever there is."""

    task: str = ""
    attempt_a: str = ""
    attempt_b: str = ""


def match(a: Iterable[Trace], b: Iterable[Trace], chosen: Chosen) -> MatchedTasks:
    """Returns the trajectories of the tasks that both sides have.

    Of several attempts at a task the first that recorded steps is taken: attempts are exchangeable, so another choice
    is as good and may part elsewhere. Two sides with one trajectory each are compared whatever their names.
    """
    left = _by_task(a, chosen.task, chosen.attempt_a)
    right = _by_task(b, chosen.task, chosen.attempt_b)
    if len(left) == len(right) == 1 and left.keys() != right.keys():
        right = dict(zip(left, right.values(), strict=True))
    both = [task for task in left if task in right]
    matched = [MatchedTask(*left[task][:1], *right[task][:1], left[task][1], right[task][1]) for task in both]
    return MatchedTasks(
        tasks=tuple(one for one in matched if one.a.steps and one.b.steps),
        only_a=tuple(task for task in left if task not in right),
        only_b=tuple(task for task in right if task not in left),
        without_steps=tuple(one.a.task_id for one in matched if not (one.a.steps and one.b.steps)),
    )


def _by_task(traces: Iterable[Trace], task: str, attempt: str) -> dict[str, tuple[Trace, int]]:
    found: dict[str, tuple[Trace, int]] = {}
    for trace in traces:
        if task and not _names(task, trace.task_id):
            continue
        if attempt and not _names(attempt, trace.attempt_id):
            continue
        best, count = found.get(trace.task_id, (trace, 0))
        found[trace.task_id] = (best if best.steps else trace, count + 1)
    return found


def _names(asked: str, name: str) -> bool:
    """Says whether a name was meant: the whole of it, or its last parts."""
    return name == asked or name.endswith(f"/{asked}")
