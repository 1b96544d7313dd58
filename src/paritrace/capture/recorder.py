"""The middle of a capture: sequence numbers, contexts, gaps and the way of a record to the writer. Knows no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from paritrace.capture.definitions import Definitions
from paritrace.capture.levels import LevelPlan, Levels, highest
from paritrace.capture.own_time import OwnTime
from paritrace.capture.settings import CaptureSettings
from paritrace.capture.sites import Sites
from paritrace.capture.steps import Steps
from paritrace.capture.tensor_store import TensorStore
from paritrace.capture.writer import JournalWriter
from paritrace.clock import Clock
from paritrace.evidence import calls
from paritrace.evidence.calls import Level, Phase
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap

THREAD = "main"  # the role of the one thread that is observed, alike in every run (CP-1)
MAX_LAG_INTERVALS = 2  # CA-13
LAG = "lag"
LEAST_INTERVAL_NS = 5_000_000_000  # steps of milliseconds come faster than a writer's thread is scheduled
MAX_GAP_MARKS = 200  # details of one reason kept in the journal; the counts go on


class Recorder:
    """State that every observer of one session shares. Owned by the thread that began the session."""

    def __init__(
        self,
        settings: CaptureSettings,
        *,
        writer: JournalWriter,
        clock: Clock,
        root: Path,
        main: str | None,
        windows: bool = False,
    ) -> None:
        self.settings = settings
        self.plan = LevelPlan(settings, windows=windows)
        self.writer = writer
        self.emit: Callable[[object], None] = writer.put
        self.definitions = Definitions(writer.put)
        self.thread = self.definitions.name(THREAD)
        self.sites = Sites(root=root, main=main, emit=writer.put, keep_sources=settings.sources)
        self.steps = Steps()
        self.sequence = 0
        self.labels: dict[str, str | int] = {}
        self.gaps: Counter[str] = Counter()
        self.steps_ended = 0
        self._clock = clock
        self._started_ns = clock.monotonic_ns()
        self._step_started_ns = 0
        self._step_first_sequence = 0
        self._context_key: tuple[int, int, Phase] | None = None
        self._context = -1
        self._levels: Levels = frozenset()
        self._written: Levels = frozenset()
        self._why_lower = ""
        self._lowered_ns = 0
        self.grad_squares: dict[int, float] = {}  # by optimizer: one that tries again counts once
        self.norm_lacks: set[str] = set()  # what of this step's gradients this rank did not see
        self.after_step: Callable[[], None] = _nothing
        self.listen: Callable[[], None] = _nothing  # before the levels of a step are taken
        self.step_begins: Callable[[], None] = _nothing  # after that
        self.set_up_ended: Callable[[], None] = _nothing  # the first step of the session begins
        self.tensors: TensorStore | None = None  # where tensors are to be kept whole (CA-9)
        self.own_time: OwnTime | None = None  # measured where a budget was given
        self.judge_cost: Callable[[int], str] = _no_complaint  # ns of the step -> why its levels cost too much, or ""
        self.set_levels("begin")

    def now_ns(self) -> int:
        """Monotonic time since the session began."""
        return self._clock.monotonic_ns() - self._started_ns

    @property
    def levels(self) -> Levels:
        """The levels observed at this step."""
        return self._levels

    def context(self, *, in_module: bool) -> int:
        """Id of the present context."""
        steps = self.steps
        key = (steps.step, steps.microbatch, steps.phase(in_module=in_module))
        if key != self._context_key:
            self._context_key = key
            self._context = self.definitions.context(*key, self.labels)
        return self._context

    def set_label(self, name: str, value: str | int | None) -> None:
        """`paritrace.context(name=value)`; None removes it."""
        if value is None:
            self.labels.pop(name, None)
        else:
            self.labels[name] = value
        self._context_key = None

    def count(self, reason: CountedGap, detail: str, *, number: int = 1) -> None:
        """Count a gap; its place is written for the first ones of each reason."""
        before = self.gaps[reason]
        self.gaps[reason] = before + number
        if before < MAX_GAP_MARKS:
            self.emit(calls.GapMark(reason, number, detail, self.steps.step))

    def end_step(self, to: int | None = None) -> None:
        """The step is over: mark it, hand its records to the writer, open the next."""
        steps = self.steps
        now = self.now_ns()
        self.steps_ended += 1
        self.emit(
            calls.StepMark(
                steps.step,
                self._step_started_ns,
                now,
                self.sequence - self._step_first_sequence,
                steps.backwards,
                steps.optimizer_steps,
                self._gradient_norm(),
            )
        )
        self.writer.hand_over()
        self._judge(now)
        steps.advance(to)
        self.grad_squares.clear()
        self.norm_lacks.clear()
        self._step_started_ns = now
        self._step_first_sequence = self.sequence
        self._context_key = None
        self.definitions.step_ended()
        self.set_levels("steps")
        self.after_step()

    def _gradient_norm(self) -> str | Gap[CaptureGap]:
        """The norm over all gradients; what this rank saw of it does not pass for the whole."""
        if not self.grad_squares:
            return Gap(CaptureGap.NOT_OBSERVED)
        norm = (sum(self.grad_squares.values()) ** 0.5).hex()
        lacks = " and ".join(sorted(self.norm_lacks))
        return Gap(CaptureGap.NOT_OBSERVED, f"{norm} of what was read here, without {lacks}") if lacks else norm

    def set_levels(self, reason: str) -> None:
        """Take the levels of the present step; a change is a record (CA-2)."""
        self.listen()
        step = self.steps.step
        self._levels = self.plan.observed(step)
        written = self.plan.written(step)
        if written != self._written or self._why_lower:
            self._written = written
            self.emit(calls.LevelMark(step, tuple(sorted(written)), self._why_lower or reason))
            self._why_lower = ""
        self.step_begins()

    def _judge(self, now: int) -> None:
        """Give a level up if its step cost too much, or if the writer does not keep up (CA-2, CA-13)."""
        interval = max(now - self._step_started_ns, LEAST_INTERVAL_NS)
        why = self.judge_cost(now - self._step_started_ns)
        lag = self.writer.lag_ns()
        if not why and lag > MAX_LAG_INTERVALS * interval and now - self._lowered_ns > MAX_LAG_INTERVALS * interval:
            why = f"{LAG}: the writer was {lag / 1e9:.0f} s behind"
        if not why:
            return
        before = highest(self._levels)
        left = self.plan.lower(self.steps.step)
        if left is not None:
            self._lowered_ns = now
            self._why_lower = f"{why}; level {before.value} given up, {left.value} goes on"
        elif before is Level.DIGEST and not why.startswith(LAG):
            self._why_lower = f"{why}; there is no level below {before.value}"


def _nothing() -> None:
    """Nobody waits for a step."""


def _no_complaint(_: int) -> str:
    """Nobody asked what a step may cost."""
    return ""
