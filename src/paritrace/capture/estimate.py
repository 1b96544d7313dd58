"""`--estimate`: what a capture would cost, told after three steps of which the middle one is captured (CA-2)."""

from __future__ import annotations

from collections.abc import Callable

from paritrace.capture.recorder import Recorder

STEPS_RUN = 3  # one to warm up, one captured, one bare to measure against


class Estimate:
    """Says the estimate when the third step has ended, and ends the workload with status 0."""

    def __init__(self, recorder: Recorder, *, say: Callable[[str], None]) -> None:
        self._recorder = recorder
        self._say = say
        self._inner = recorder.after_step
        self._ends_ns = [recorder.now_ns()]
        self._sizes: list[int] = []
        self._workload_runs = True

    def install(self) -> None:
        self._recorder.after_step = self._after_step

    def workload_ended(self) -> None:
        """The workload ends by itself: a step that ends from here on ends nothing more."""
        self._workload_runs = False

    def close(self) -> None:
        """Say so if there were too few steps."""
        if len(self._sizes) < STEPS_RUN:
            self._say(
                f"no estimate: the workload ended after {len(self._sizes)} of the {STEPS_RUN} steps that it takes"
            )

    def _after_step(self) -> None:
        self._inner()
        self._recorder.writer.drain()
        self._ends_ns.append(self._recorder.now_ns())
        self._sizes.append(self._recorder.writer.bytes_written)
        if len(self._sizes) == STEPS_RUN:
            self._say(estimate_text(self._ends_ns, self._sizes, calls=self._recorder.writer.counts["Call"]))
            if self._workload_runs:
                raise SystemExit(0)


def estimate_text(ends_ns: list[int], sizes: list[int], *, calls: int) -> str:
    """The estimate from the times and the journal's sizes at the ends of three steps."""
    captured, bare = (ends_ns[2] - ends_ns[1]) / 1e9, (ends_ns[3] - ends_ns[2]) / 1e9
    size = (sizes[1] - sizes[0]) / 1e6
    ratio = f"{captured / bare:.2f} times the next, bare one" if bare > 0 else "not measurable"
    return (
        f"estimate from one captured step: {calls:,} calls, {size:.1f} MB per step;"
        f" it took {captured:.2f} s, {ratio} ({bare:.2f} s)"
    )
