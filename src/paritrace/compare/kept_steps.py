"""Places states and marks of steps whose calls came late, out of a black box, among these calls (CA-36)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from paritrace.evidence.calls import Call, Context, LossMark, Phase, State, StepMark


@dataclass(slots=True)
class _Span:
    """Ids of the calls of a step or of one of its micro-batches: `left` of the last one by phase, and of all."""

    first: int
    last: int = -1
    by_phase: dict[Phase, int] = field(default_factory=dict[Phase, int])

    def take(self, call: Call, phase: Phase) -> None:
        self.first = min(self.first, call.id)
        self.last = max(self.last, call.left)
        self.by_phase[phase] = max(self.by_phase.get(phase, -1), call.left)


class KeptSteps:
    """The calls of steps that a black box kept: a step's marks reached the journal before them."""

    def __init__(self, calls: Iterable[Call], *, contexts: dict[int, Context], steps: set[int]) -> None:
        self._spans: dict[tuple[int, int], _Span] = {}
        for call in calls:
            context = contexts[call.context]
            if context.step in steps:
                for microbatch in (-1, context.microbatch):  # -1: the step
                    span = self._spans.setdefault((context.step, microbatch), _Span(call.id))
                    span.take(call, context.phase)

    def before(self, record: State | LossMark | StepMark) -> int | None:
        """`left` of the call before a record, as the steps are made; None for a record of another step."""
        whole = self._spans.get((record.step, -1))
        if whole is None:
            return None
        match record:
            case StepMark():
                return whole.last
            case LossMark():
                return self._of(record.step, record.microbatch, whole).by_phase.get(Phase.FORWARD, whole.first - 1)
            case State() if record.moment == "grads":
                return whole.by_phase.get(Phase.BACKWARD, whole.last)
            case State() if record.moment == "batch":
                return self._of(record.step, record.microbatch, whole).first - 1
            case State():
                return whole.first - 1

    def _of(self, step: int, microbatch: int, whole: _Span) -> _Span:
        return self._spans.get((step, microbatch), whole)
