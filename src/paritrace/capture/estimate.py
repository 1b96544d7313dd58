"""`--estimate`: what a capture would cost, told after three steps of which the middle one is captured (CA-2)."""

from __future__ import annotations

from collections.abc import Callable

from paritrace.capture.recorder import Recorder

STEPS_RUN = 3  # one to warm up, one captured, one bare to measure against


def end_after_estimate(recorder: Recorder, *, say: Callable[[str], None]) -> None:
    """Say the estimate when the third step has ended, and end the workload with status 0."""
    inner = recorder.after_step
    ends_ns: list[int] = [recorder.now_ns()]
    sizes: list[int] = []

    def after_step() -> None:
        inner()
        recorder.writer.drain()
        ends_ns.append(recorder.now_ns())
        sizes.append(recorder.writer.bytes_written)
        if len(sizes) == STEPS_RUN:
            say(estimate_text(ends_ns, sizes, calls=recorder.writer.counts["Call"]))
            raise SystemExit(0)

    recorder.after_step = after_step


def estimate_text(ends_ns: list[int], sizes: list[int], *, calls: int) -> str:
    """The estimate from the times and the journal's sizes at the ends of three steps."""
    captured, bare = (ends_ns[2] - ends_ns[1]) / 1e9, (ends_ns[3] - ends_ns[2]) / 1e9
    size = (sizes[1] - sizes[0]) / 1e6
    ratio = f"{captured / bare:.2f} times the next, bare one" if bare > 0 else "not measurable"
    return (
        f"estimate from one captured step: {calls:,} calls, {size:.1f} MB per step;"
        f" it took {captured:.2f} s, {ratio} ({bare:.2f} s)"
    )
