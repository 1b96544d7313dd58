"""What a comparison of two log directories says: the claim, what bears on it, both sides (AT-22)."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from paritrace.attempts.judged_twice import JudgedTwice
from paritrace.attempts.noise import Noise, RepeatOf
from paritrace.attempts.result import AttemptsComparison
from paritrace.attempts.statistics.records import Absent
from paritrace.reports.attempts.sections import Part, parts_of_comparison
from paritrace.reports.attempts.words import counts, estimate_in_words, gap_in_words
from paritrace.reports.harmless import harmless
from paritrace.reports.trajectories.document import TaskShown, Trajectories
from paritrace.reports.trajectories.words import plural

FORMAT = "paritrace-attempts-directories"
VERSION = "1.0"
MOST_TASKS = 12  # trajectories that are listed; `attempts diverge` has all


class DirectoriesCompared(Struct, frozen=True):
    """What `compare DIR DIR --json` prints. None: nothing of that kind is there."""

    format: str
    version: str
    comparison: AttemptsComparison
    noise: Noise | None
    judged_twice: JudgedTwice | None
    trajectories: Trajectories | None
    refused: tuple[str, ...]


def parts_of_directories(found: DirectoriesCompared) -> Iterator[Part]:
    """Yields the parts of a report: what is claimed, what bears on it, then both sides."""
    own = list(_own(found))
    heads = 0
    for part in parts_of_comparison(found.comparison):
        if part.level == 1:
            heads += 1
            if heads == 2:
                yield from own
        yield part


def _own(found: DirectoriesCompared) -> Iterator[Part]:
    if found.judged_twice is not None:
        yield _judged_twice(found.judged_twice)
    if found.noise is not None:
        yield _noise(found.noise)
    if found.trajectories is not None:
        yield _trajectories(found.trajectories)
    if found.refused:
        yield Part("not read", notes=tuple(harmless(one) for one in found.refused))


def _judged_twice(found: JudgedTwice) -> Part:
    notes = [
        "these are the same attempts judged twice: differences are those of the judging, not of two configurations"
    ]
    if found.changed:
        named = ", ".join(harmless(one) for one in found.changed[:MOST_TASKS])
        more = len(found.changed) - MOST_TASKS
        notes.append(f"judged otherwise: {named}" + (f", and {more:,} more" if more > 0 else ""))
    rows = (
        ("the same attempts", f"{found.num_same:,} on both sides, {found.num_both:,} judged on both"),
        ("verdicts agree", f"{found.num_agree:,} of {found.num_both:,}"),
        ("changed", counts(found.changes)),
    )
    return Part("judged twice", rows, tuple(notes))


def _noise(found: Noise) -> Part:
    rows = [(harmless(one.repeat), _repeat(one)) for one in found.repeats]
    return Part("the baseline against repeats of itself", tuple(rows), tuple(_noise_notes(found)))


def _repeat(one: RepeatOf) -> str:
    bounds = one.bounds
    tail = gap_in_words(bounds) if isinstance(bounds, Absent) else f"[{bounds[0]:+.3f}, {bounds[1]:+.3f}]"
    return f"{estimate_in_words(one.difference)}; bounds {tail}"


def _noise_notes(found: Noise) -> Iterator[str]:
    if isinstance(found.largest, Absent):
        yield "no repeat could be compared: the noise floor is not known"
        return
    if isinstance(found.difference, Absent) or isinstance(found.num_as_large, Absent):
        yield f"the noise floor is at least {found.largest:.3f}; there is no difference to hold against it"
        return
    count = len(found.repeats)
    if found.num_as_large:
        yield (
            f"{found.num_as_large:,} of {plural(count, 'repeat')} differ from the baseline as much as the candidate "
            f"({abs(found.difference):.3f}) or more: such a difference is within the noise of the harness"
        )
    else:
        yield (
            f"the difference, {abs(found.difference):.3f}, is larger than that to any of {plural(count, 'repeat')} "
            f"(at most {found.largest:.3f})"
        )
    if isinstance(found.chance_at_most, Absent):
        yield "fewer than 4 repeats: how often chance alone would do so is not estimable"
    else:
        yield f"by chance alone at most {found.chance_at_most:.2f} of such comparisons ({count} exchangeable repeats)"


def _trajectories(found: Trajectories) -> Part:
    parted = [one for one in found.tasks if one.parting is not None]
    ordered = sorted(found.tasks, key=lambda one: (one.a.outcome == one.b.outcome, one.parting is None, one.task_id))
    rows = tuple((harmless(one.task_id), _place(one)) for one in ordered[:MOST_TASKS])
    more = len(ordered) - len(rows)
    notes = [f"{more:,} more tasks: paritrace attempts diverge A B"] if more > 0 else []
    if found.without_steps:
        notes.append(_without(found.without_steps))
    title = f"trajectories: {len(parted):,} of {plural(len(found.tasks), 'task')} part (one attempt each)"
    return Part(title, rows, tuple(notes))


def _without(tasks: Sequence[str]) -> str:
    named = ", ".join(harmless(task) for task in tasks[:MOST_TASKS])
    return f"no steps were recorded of {plural(len(tasks), 'task')}: {named}"


def _place(one: TaskShown) -> str:
    outcome = f"{one.a.outcome or '-'} | {one.b.outcome or '-'}"
    if one.parting is None:
        return f"the same path, {plural(one.a.num_steps, 'step')}; outcomes {harmless(outcome)}"
    step = one.steps_before + 1
    longest = max(one.a.num_steps, one.b.num_steps)
    return f"part at step {step} of {longest} ({one.parting.kind}); outcomes {harmless(outcome)}"
