"""Steps, losses and gradient norms of a session: slices of a track of their own, and counters (SU-8)."""

from collections.abc import Iterable

from msgspec import Struct

from paritrace.evidence.calls import LossMark, StepMark
from paritrace.evidence.gaps import Gap
from paritrace.reports.formats import Cut
from paritrace.reports.traces.events import Event
from paritrace.reports.traces.writing import RankTrace

MOST_MICROBATCHES = 8  # tracks of losses, one for each micro-batch; further ones share the last


class Marks(Struct, frozen=True):
    """What a session says of its steps."""

    steps: tuple[StepMark, ...]
    losses: tuple[LossMark, ...]


def marks_of(records: Iterable[object], /, *, cut: Cut) -> Marks:
    """Returns the marks among the records of a session, of the steps that are wanted."""
    found = [record for record in records if isinstance(record, StepMark | LossMark)]
    wanted = [mark for mark in found if cut.takes_step(mark.step)]
    return Marks(
        steps=tuple(mark for mark in wanted if isinstance(mark, StepMark)),
        losses=tuple(mark for mark in wanted if isinstance(mark, LossMark)),
    )


def write_marks(trace: RankTrace, marks: Marks, /, *, path: tuple[str, ...], offset: int) -> None:
    """Writes them; `path` is the track that all of it stands under, `offset` where the session begins.

    A loss has no time of its own and stands at the end of its step; of a step that never ended there is none.
    """
    ends: dict[int, int] = {}
    for mark in marks.steps:
        ends[mark.step] = offset + mark.ended_ns
        trace.call((*path, "steps"), _step(mark, offset), step=mark.step)
        if not isinstance(mark.grad_norm, Gap):
            trace.count((*path, "gradient norm"), ends[mark.step], float.fromhex(mark.grad_norm))
    for loss in marks.losses:
        if loss.step in ends and not isinstance(loss.value, Gap):
            trace.count((*path, _name(loss.microbatch)), ends[loss.step], float.fromhex(loss.value))


def _step(mark: StepMark, offset: int) -> Event:
    return Event(
        start_ns=offset + mark.started_ns,
        duration_ns=mark.ended_ns - mark.started_ns,
        name=f"step {mark.step}",
        category="step",
        arguments=(("step", mark.step), ("calls", mark.calls), ("backwards", mark.backwards)),
    )


def _name(microbatch: int) -> str:
    if microbatch <= 0:
        return "loss"
    return f"loss, micro-batch {microbatch}" if microbatch < MOST_MICROBATCHES else "loss, further micro-batches"
