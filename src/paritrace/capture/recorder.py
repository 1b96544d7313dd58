"""The middle of a capture: sequence numbers, contexts, gaps and the way of a record to the writer. Knows no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from paritrace.capture.definitions import Definitions
from paritrace.capture.settings import CaptureSettings
from paritrace.capture.sites import Sites
from paritrace.capture.steps import Steps
from paritrace.capture.writer import JournalWriter
from paritrace.clock import Clock
from paritrace.evidence import calls
from paritrace.evidence.calls import Level, Phase
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap

THREAD = "main"  # the role of the one thread that is observed, alike in every run (CP-1)
MAX_GAP_MARKS = 200  # details of one reason kept in the journal; the counts go on


class Recorder:
    """State that every observer of one session shares. Owned by the thread that began the session."""

    def __init__(
        self, settings: CaptureSettings, *, writer: JournalWriter, clock: Clock, root: Path, main: str | None
    ) -> None:
        self.settings = settings
        self.writer = writer
        self.emit = writer.put
        self.definitions = Definitions(writer.put)
        self.thread = self.definitions.name(THREAD)
        self.sites = Sites(root=root, main=main, emit=writer.put, keep_sources=settings.sources)
        self.steps = Steps()
        self.sequence = 0
        self.labels: dict[str, str | int] = {}
        self.gaps: Counter[str] = Counter()
        self.steps_seen: set[int] = set()
        self._clock = clock
        self._started_ns = clock.monotonic_ns()
        self._step_started_ns = 0
        self._step_first_sequence = 0
        self._context_key: tuple[int, int, Phase] | None = None
        self._context = -1
        self._levels: frozenset[Level] = frozenset()
        self.grad_squares: dict[int, float] = {}  # by optimizer: one that tries again counts once
        self.grads_in_part = False  # other ranks hold parts of this step's gradients
        self.after_step: Callable[[], None] = _nothing
        self.set_levels("begin")

    def now_ns(self) -> int:
        """Monotonic time since the session began."""
        return self._clock.monotonic_ns() - self._started_ns

    @property
    def levels(self) -> frozenset[Level]:
        """The levels recorded at this step."""
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
        self.gaps[reason] += number
        if self.gaps[reason] <= MAX_GAP_MARKS:
            self.emit(calls.GapMark(reason, number, detail, self.steps.step))

    def end_step(self, to: int | None = None) -> None:
        """The step is over: mark it, hand its records to the writer, open the next."""
        steps = self.steps
        now = self.now_ns()
        self.steps_seen.add(steps.step)
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
        steps.advance(to)
        self.grad_squares.clear()
        self.grads_in_part = False
        self._step_started_ns = now
        self._step_first_sequence = self.sequence
        self._context_key = None
        self.set_levels("steps")
        self.after_step()

    def _gradient_norm(self) -> str | Gap[CaptureGap]:
        """The norm over all gradients; of gradients that lie on several ranks no one rank sees it."""
        if not self.grad_squares:
            return Gap(CaptureGap.NOT_OBSERVED)
        norm = (sum(self.grad_squares.values()) ** 0.5).hex()
        return Gap(CaptureGap.NOT_OBSERVED, f"in parts over ranks: {norm} of this one") if self.grads_in_part else norm

    def set_levels(self, reason: str) -> None:
        """Take the levels of the present step; a change is a record (CA-2)."""
        wanted = self.settings.levels if self.settings.covers(self.steps.step) else frozenset({Level.DIGEST})
        if wanted != self._levels:
            self._levels = wanted
            self.emit(calls.LevelMark(self.steps.step, tuple(sorted(wanted)), reason))


def _nothing() -> None:
    """Nobody waits for the end of a step."""
