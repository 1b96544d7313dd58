"""What observing may cost: the first step of each set of levels is judged by the capture's own time (CA-2)."""

from __future__ import annotations

from paritrace.capture.levels import Levels
from paritrace.capture.own_time import OwnTime
from paritrace.capture.recorder import Recorder


class Budget:
    """Judges the first step of each set of levels; steps with a window of the black box are few and not judged."""

    def __init__(self, recorder: Recorder, *, share: float) -> None:
        self._recorder = recorder
        self._share = share
        self._judged: set[Levels] = set()
        self._own = OwnTime(recorder.now_ns)
        self._from_ns = 0  # when the first step began

    def install(self) -> None:
        """To be called before the observers are made: they ask the recorder whether to be measured."""
        self._recorder.own_time = self._own
        self._recorder.set_up_ended = self._start
        self._recorder.judge_cost = self._judge

    def _start(self) -> None:
        """Forgets what went before the first step: beside imports and making a model every capture looks cheap."""
        self._own.total_ns = 0
        self._from_ns = self._recorder.now_ns()

    def _judge(self, step_ns: int) -> str:
        """Why the step that ends now costs too much, or "". `step_ns`: from the end of the one before."""
        own_ns, self._own.total_ns = self._own.total_ns, 0
        recorder = self._recorder
        step_ns = min(step_ns, recorder.now_ns() - self._from_ns)
        levels = recorder.levels
        if levels in self._judged or recorder.plan.has_window(recorder.steps.step):
            return ""
        self._judged.add(levels)
        share = own_ns / max(step_ns - own_ns, 1)
        if share <= self._share:
            return ""
        return f"budget: observing took {share:.1%} of the workload's own time, over {self._share * 100:g}%"
