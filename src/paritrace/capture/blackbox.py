"""The black box: calls of level `module` of the last steps stay in memory and are written on a trigger (CA-36)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import isfinite

from paritrace.capture.outliers import RULES, Outliers
from paritrace.capture.recorder import Recorder
from paritrace.capture.ring import SLACK_STEPS, Ring
from paritrace.capture.settings import CaptureSettings
from paritrace.capture.triggers import Sign, Signs
from paritrace.capture.windows import Covering
from paritrace.evidence import blackbox as evidence
from paritrace.evidence.blackbox import Cause, Trigger
from paritrace.evidence.calls import Call, Context, Detail, LossMark, StepMark
from paritrace.evidence.gaps import CountedGap
from paritrace.files import Files
from paritrace.runs.envelope import TRIGGERS_FOLDER
from paritrace.runs.session import OpenSession

KEPT_STEPS = 20  # CA-36
MAX_WRITES = 8  # for each cause: a month of triggers must not fill the disk, nor one cause silence the others
MAX_LOSSES = 64  # losses of one step that are watched, each with figures of its own
NOT_WRITTEN = f"not written: the box was written {MAX_WRITES} times for this cause already"
ENDING = frozenset({Cause.CRASH, Cause.SIGTERM})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a trigger rests on; texts as `Trigger` has them."""

    cause: Cause
    detail: str = ""
    value: str = ""
    threshold: str = ""


class BlackBox:
    """Stands between the observers and the writer. Owned by the thread that began the session."""

    def __init__(self, recorder: Recorder, *, ring: Ring, signs: Signs) -> None:
        self._recorder = recorder
        self._put = recorder.writer.put
        self._ring = ring
        self._signs = signs
        self._kept = False  # rows of this step go into the ring
        self._first = 0  # the first record of this step: rows of earlier ones were written before
        self._contexts: list[Context] = []  # of this step, kept and not written
        self._passed = 0  # steps begun
        self._silent_until: dict[Cause, int] = {}
        self._outliers: dict[str, Outliers] = {}
        self._losses = 0  # in this step
        self._heard: list[Sign] = []  # of steps that have not ended here
        self._writes: Counter[Cause] = Counter()

    def install(self) -> None:
        """Take every record from now on."""
        self._recorder.emit = self._recorder.definitions.emit_context = self.take
        self._recorder.listen = self.listen
        self._recorder.step_begins = self._step_begins
        self._step_begins()

    def take(self, record: object) -> None:
        """One record of an observer: a row of this step is kept where the plan says so, all else is written."""
        if self._kept and self._is_of_this_step(record):
            self._ring.keep(record)
        else:
            self._put(record)
        try:
            self._judge(record)
        except Exception as error:  # noqa: BLE001  a fault of ours is a gap, never the workload's (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"black box: {type(error).__name__}")

    def _is_of_this_step(self, record: object) -> bool:
        """Rows, and the contexts they refer to; what belongs to an earlier step was written, or is in the ring."""
        if isinstance(record, Call):
            return record.id >= self._first
        if isinstance(record, Detail):
            return record.call >= self._first
        if isinstance(record, Context):
            self._contexts.append(record)
            return True
        return False

    def listen(self) -> None:
        """A step is about to begin: what others have found is heard now, so that all keep the same steps."""
        self._hear(ending=False)

    def finish(self) -> None:
        """Nothing more will be observed: what others found last is heard."""
        self._hear(ending=True)

    def _hear(self, *, ending: bool) -> None:
        """Act on what others left, as soon as their step has ended here, too: this rank may be the slower one."""
        try:
            present = self._recorder.steps.step
            waiting, self._heard = [*self._heard, *self._signs.look()], []
            for sign in waiting:
                if not ending and sign.step is not None and present <= sign.step <= present + SLACK_STEPS:
                    self._heard.append(sign)
                else:
                    self._follow(sign)
        except Exception as error:  # noqa: BLE001  a fault of ours is a gap, never the workload's (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"black box: {type(error).__name__}")

    def ask(self, detail: str, *, window: bool) -> None:
        """`paritrace.trigger(...)`: write what is held, and record level `op` in the next step if asked for."""
        if window:
            self._recorder.plan.ask_for_window(self._recorder.steps.step + 1)
        self._fire(Finding(cause=Cause.USER, detail=detail), window=window)

    def ends(self, cause: Cause, detail: str) -> None:
        """The process ends before its time: what is held is written, however often it was before."""
        self._fire(Finding(cause=cause, detail=detail))

    def _judge(self, record: object) -> None:
        if isinstance(record, Detail):
            if record.counts is not None and (record.counts.nan or record.counts.positive_infinity):
                self._see(_slot(record))
        elif isinstance(record, LossMark):
            self._losses += 1
            if isinstance(record.value, str) and self._losses <= MAX_LOSSES:
                self._figure(f"loss {self._losses - 1}", record.value, Cause.LOSS_OUTLIER)
        elif isinstance(record, StepMark) and isinstance(record.grad_norm, str):
            self._figure("gradient norm", record.grad_norm, Cause.GRADIENT_NORM_OUTLIER)

    def _figure(self, name: str, text: str, cause: Cause) -> None:
        value = float.fromhex(text)
        if not isfinite(value):
            self._see(Finding(cause=Cause.NON_FINITE, detail=name, value=repr(value)))
            return
        threshold = self._outliers.setdefault(name, Outliers()).judge(value)
        if threshold is not None:
            self._see(Finding(cause=cause, detail=name, value=value.hex(), threshold=threshold.hex()))

    def _see(self, finding: Finding) -> None:
        """Something by itself: it is told once, and again only after as many steps without it as the ring keeps."""
        silent = self._passed < self._silent_until.get(finding.cause, 0)
        self._silent_until[finding.cause] = self._passed + KEPT_STEPS
        if not silent:
            self._fire(finding)

    def _fire(self, finding: Finding, *, window: bool = False) -> None:
        step = self._recorder.steps.step
        if not self._signs.leave(step, finding.cause.value, window=window):
            self._recorder.count(CountedGap.CAPTURE_ERROR, "the other ranks could not be told of a trigger")
        if self._writes[finding.cause] >= MAX_WRITES and finding.cause not in ENDING:
            self._put(_trigger(finding, step, NOT_WRITTEN))
            return
        self._write(finding, step=step, since=None)

    def _write(self, finding: Finding, *, step: int, since: int | None) -> None:
        """The mark, then the rows; what is left of this step follows by itself."""
        taken = self._ring.take(since)
        steps = taken.steps
        if self._kept and step not in steps:
            steps = (*steps, step)
        self._kept = False
        self._writes[finding.cause] += 1
        writer = self._recorder.writer
        for context in self._contexts:  # rows to come refer to them, whatever the ring had to drop
            writer.put(context)
        writer.put(
            Trigger(
                step,
                finding.cause,
                finding.detail,
                finding.value,
                finding.threshold,
                steps,
                taken.rows,
                taken.dropped_steps,
                taken.dropped_rows,
            )
        )
        for lines in taken.lines:
            writer.hand_over_lines(lines)
        writer.hand_over()
        if taken.cut_rows:  # a step is there in part: without this, what is missing would look as if it had not been
            self._recorder.count(CountedGap.OVER_BUDGET, "black box", number=taken.cut_rows)
        if taken.faults:
            self._recorder.count(CountedGap.CAPTURE_ERROR, "black box", number=taken.faults)

    def _step_begins(self) -> None:
        recorder = self._recorder
        self._passed += 1
        self._losses = 0
        self._contexts.clear()
        self._first = recorder.sequence
        self._kept = recorder.plan.is_kept(recorder.steps.step)
        self._ring.begin(recorder.steps.step)

    def _follow(self, sign: Sign) -> None:
        """Another rank, or a person: what is held of the same steps is written, too."""
        recorder = self._recorder
        if sign.window:
            recorder.plan.ask_for_window(recorder.steps.step)
        if not self._ring.has_rows:
            return
        finding = Finding(cause=Cause.USER if sign.step is None else Cause.OTHER_RANK, detail=f"triggers/{sign.name}")
        last = self._ring.last_step
        if self._writes[finding.cause] >= MAX_WRITES:
            self._put(_trigger(finding, last, NOT_WRITTEN))
            return
        self._kept = False
        numbered_alike = sign.step is not None and abs(sign.step - last) <= SLACK_STEPS
        since = sign.step - KEPT_STEPS + 1 if sign.step is not None and numbered_alike else None
        self._write(finding, step=last, since=since)


def black_box(recorder: Recorder, session: OpenSession, *, files: Files) -> BlackBox:
    """The black box of a session that begins, taking its records from now on.

    Raises:
        HostError: Refused: the folder for the other ranks' triggers cannot be made.
    """
    signs = Signs(session.signals_dir / TRIGGERS_FOLDER, session_id=session.session_id, files=files)
    signs.open()
    ring = Ring(steps=KEPT_STEPS, num_bytes=recorder.settings.black_box_bytes)
    box = BlackBox(recorder, ring=ring, signs=signs)
    box.install()
    return box


def box_record(settings: CaptureSettings, covered: Covering, *, world_size: int, not_watched: str) -> evidence.BlackBox:
    """What this black box keeps, for the journal; a rank that is not captured has no windows."""
    chosen = settings.ranks
    return evidence.BlackBox(
        KEPT_STEPS,
        settings.black_box_bytes,
        RULES,
        tuple(rank for rank in covered.ranks if chosen is None or rank in chosen),
        world_size,
        covered.basis,
        (not_watched,) if not_watched else (),
    )


def _trigger(finding: Finding, step: int, why: str) -> Trigger:
    """The mark of a trigger behind which no rows follow."""
    detail = f"{finding.detail}; {why}" if finding.detail else why
    return Trigger(step, finding.cause, detail, finding.value, finding.threshold, (), 0)


def _slot(detail: Detail) -> Finding:
    side = "input" if detail.side == "i" else "output"
    return Finding(cause=Cause.NON_FINITE, detail=f"{side} {detail.slot} of call {detail.call}")
