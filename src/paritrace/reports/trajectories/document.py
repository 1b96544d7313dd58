"""Records of a comparison of trajectories: what `attempts diverge --json` prints (AT-23)."""

from msgspec import Struct

from paritrace import __version__
from paritrace.attempts.divergence import Divergence, PartingKind, Recovery, Standing, diverge
from paritrace.attempts.origins import Origin, Source
from paritrace.attempts.trace_matching import MatchedTask, MatchedTasks
from paritrace.attempts.traces import Step, Trace

FORMAT = "paritrace-trajectories"
VERSION = "1.0"


class ArgumentShown(Struct, frozen=True):
    """`text`: the beginning of the value, where values were asked for."""

    name: str
    sha256: str
    text: str | None


class StepShown(Struct, frozen=True):
    number: int
    kind: str
    name: str
    program: str
    arguments: tuple[ArgumentShown, ...]
    result_sha256: str | None
    origin: Origin


class SideOf(Struct, frozen=True):
    """One trajectory. `num_attempts`: at the task, of which this is one. `inherited`: copied steps, not compared."""

    attempt_id: str
    outcome: str
    num_steps: int
    num_attempts: int
    inherited: int
    origin: Origin


class PartingShown(Struct, frozen=True):
    """The first step that parts; None on the side that has ended."""

    kind: PartingKind
    arguments: tuple[str, ...]
    a: StepShown | None
    b: StepShown | None


class StretchShown(Struct, frozen=True):
    """Consecutive steps by their numbers, from and to; None where a side has none of them."""

    standing: Standing
    a: tuple[int, int] | None
    b: tuple[int, int] | None


class Counts(Struct, frozen=True):
    """Steps by their standing; what is paired is counted once."""

    same: int
    other_result: int
    arguments: int
    reordered: int
    order: int
    only_a: int
    only_b: int
    results_unknown: int
    wording_differs: int
    wording_compared: int


class TaskShown(Struct, frozen=True):
    """One task: where its two trajectories part, and whether they come together again."""

    task_id: str
    a: SideOf
    b: SideOf
    steps_before: int
    parting: PartingShown | None
    recovery: Recovery
    other_results_before: tuple[tuple[StepShown, StepShown], ...]
    rejoins: tuple[StretchShown, ...]
    stretches: tuple[StretchShown, ...]
    counts: Counts


class Trajectories(Struct, frozen=True):
    """A whole comparison (AT-23)."""

    format: str
    version: str
    paritrace: str
    a: str
    b: str
    tasks: tuple[TaskShown, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    without_steps: tuple[str, ...]
    sources: tuple[Source, ...]
    refused: tuple[str, ...]


class Held(Struct, frozen=True):
    """One task beside its divergence: what the screens read."""

    task: MatchedTask
    divergence: Divergence


def held(matched: MatchedTasks) -> tuple[Held, ...]:
    """Returns every matched task with where its trajectories part."""
    return tuple(Held(task=task, divergence=diverge(task.a, task.b)) for task in matched.tasks)


def document(
    names: tuple[str, str],
    matched: MatchedTasks,
    found: tuple[Held, ...],
    *,
    sources: tuple[Source, ...],
    refused: tuple[str, ...],
    values: bool = False,
) -> Trajectories:
    """Returns the comparison as one document.

    Args:
        names: what the user called the two sides.
        matched: the tasks of both sides.
        found: what `held` made of them.
        sources: the files that were read.
        refused: what of them was not.
        values: with the beginnings of arguments; without, names and digests only (P7).
    """
    return Trajectories(
        format=FORMAT,
        version=VERSION,
        paritrace=__version__,
        a=names[0],
        b=names[1],
        tasks=tuple(_task(one, values=values) for one in found),
        only_a=matched.only_a,
        only_b=matched.only_b,
        without_steps=matched.without_steps,
        sources=sources,
        refused=refused,
    )


def _task(one: Held, *, values: bool) -> TaskShown:
    a, b, found = one.task.a, one.task.b, one.divergence
    return TaskShown(
        task_id=a.task_id,
        a=_side(a, one.task.num_a),
        b=_side(b, one.task.num_b),
        steps_before=found.before,
        parting=_parting(a, b, found, values=values),
        recovery=found.recovery,
        other_results_before=tuple(
            (_step(a.steps[i], values=values), _step(b.steps[j], values=values)) for i, j in found.other_results
        ),
        rejoins=tuple(_stretch(stretch.standing, stretch.a, stretch.b) for stretch in found.rejoins),
        stretches=tuple(_stretch(stretch.standing, stretch.a, stretch.b) for stretch in found.stretches),
        counts=counts_of(found),
    )


def counts_of(found: Divergence) -> Counts:
    """Returns how many steps have which standing."""
    return Counts(
        same=found.count(0, Standing.SAME),
        other_result=found.count(0, Standing.OTHER_RESULT),
        arguments=found.count(0, Standing.ARGUMENTS),
        reordered=found.count(0, Standing.REORDERED),
        order=found.count(0, Standing.ORDER),
        only_a=found.count(0, Standing.ONLY),
        only_b=found.count(1, Standing.ONLY),
        results_unknown=found.results_unknown,
        wording_differs=found.wording[0],
        wording_compared=found.wording[1],
    )


def _side(trace: Trace, num_attempts: int) -> SideOf:
    return SideOf(
        attempt_id=trace.attempt_id,
        outcome=trace.outcome,
        num_steps=len(trace.steps),
        num_attempts=num_attempts,
        inherited=trace.inherited,
        origin=trace.origin,
    )


def _parting(a: Trace, b: Trace, found: Divergence, *, values: bool) -> PartingShown | None:
    parting = found.parting
    if parting is None:
        return None
    return PartingShown(
        kind=parting.kind,
        arguments=parting.arguments,
        a=None if parting.a is None else _step(a.steps[parting.a], values=values),
        b=None if parting.b is None else _step(b.steps[parting.b], values=values),
    )


def _step(step: Step, *, values: bool) -> StepShown:
    return StepShown(
        number=step.number,
        kind=step.kind,
        name=step.name,
        program=step.program,
        arguments=tuple(
            ArgumentShown(name=one.name, sha256=one.sha256, text=one.text if values else None) for one in step.arguments
        ),
        result_sha256=step.result_sha256,
        origin=step.origin,
    )


def _stretch(standing: Standing, a: tuple[int, int], b: tuple[int, int]) -> StretchShown:
    return StretchShown(standing=standing, a=numbers(a), b=numbers(b))


def numbers(places: tuple[int, int]) -> tuple[int, int] | None:
    """Returns places `[start, end)` as the numbers of the first and the last step, None where there is none."""
    return (places[0] + 1, places[1]) if places[1] > places[0] else None
