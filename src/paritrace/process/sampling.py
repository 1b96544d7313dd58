"""Takes samples of a tree in a thread of its own, at most so many, the endpoints included (RS-6)."""

import threading
from collections.abc import Callable
from typing import NamedTuple

from paritrace.clock import SYSTEM, Clock
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.resources import ResourceSnapshot
from paritrace.process.samples import Sample, SampleSummary, summary_of

DEFAULT_INTERVAL_SECONDS = 1.0
DEFAULT_MOST_SAMPLES = 10_000
LEAST_SAMPLES = 2  # the endpoints
STOP_SECONDS = 5.0
"""How long the end waits for a look that has begun; /proc answers in milliseconds, on an overloaded machine in more."""

Look = Callable[[], ResourceSnapshot | Gap[ResourceGap]]


class Series(NamedTuple):
    """What a sampler took, in order, and its summary."""

    samples: tuple[Sample, ...]
    summary: SampleSummary


class Sampler:
    """Owns one thread between `start` and `stop`. `look` is `TreeObserver.final`, called by that thread alone."""

    def __init__(
        self,
        look: Look,
        *,
        interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
        most_samples: int = DEFAULT_MOST_SAMPLES,
        clock: Clock = SYSTEM,
    ) -> None:
        if interval_seconds <= 0 or most_samples < LEAST_SAMPLES:
            raise ValueError(f"an interval above 0 and {LEAST_SAMPLES} samples at least are needed")
        self._look = look
        self._interval_seconds = interval_seconds
        self._most_samples = most_samples
        self._clock = clock
        self._begun_ns = 0
        self._samples: list[Sample] = []
        self._dropped = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="paritrace-sampler", daemon=True)

    def start(self) -> None:
        """Take the first sample, then one at each interval."""
        self._begun_ns = self._clock.monotonic_ns()
        self._thread.start()

    def stop(self, *, within_seconds: float = STOP_SECONDS) -> Series:
        """Have the last sample taken, whose place is always kept, and end the thread.

        A look that takes longer than `within_seconds` is not waited for: the series ends with the sample before it.
        """
        self._ending.set()
        self._thread.join(within_seconds)
        samples = tuple(self._samples)
        return Series(samples, summary_of(samples, interval_seconds=self._interval_seconds, dropped=self._dropped))

    def _run(self) -> None:
        self._take()
        while not self._ending.wait(self._seconds_to_next()):
            if len(self._samples) < self._most_samples - 1:
                self._take()
            else:
                self._dropped += 1
        self._take()

    def _take(self) -> None:
        after_seconds = self._passed_seconds()
        seen = self._look()
        self._samples.append(
            Sample(
                after_seconds=after_seconds,
                resident_memory_bytes=seen if isinstance(seen, Gap) else seen.resident_memory_bytes,
                process_count=seen if isinstance(seen, Gap) else seen.process_count,
                cpu_time_seconds=seen if isinstance(seen, Gap) else seen.cpu_time_seconds,
            )
        )

    def _seconds_to_next(self) -> float:
        """To the next multiple of the interval: a late sample does not delay those after it."""
        return self._interval_seconds - self._passed_seconds() % self._interval_seconds

    def _passed_seconds(self) -> float:
        return (self._clock.monotonic_ns() - self._begun_ns) / 1e9
