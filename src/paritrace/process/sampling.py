"""Takes samples of a tree in a thread of its own, at most so many, the endpoints included (RS-6)."""

from collections.abc import Callable

from paritrace.clock import SYSTEM, Clock
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.resources import ResourceSnapshot
from paritrace.process.samples import Sample, SampleSummary

DEFAULT_INTERVAL_SECONDS = 1.0
DEFAULT_MOST_SAMPLES = 10_000


class Sampler:
    """Owns one thread between `start` and `stop`. `look` is `TreeObserver.final`."""

    def __init__(
        self,
        look: Callable[[], ResourceSnapshot | Gap[ResourceGap]],
        *,
        interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
        most_samples: int = DEFAULT_MOST_SAMPLES,
        clock: Clock = SYSTEM,
    ) -> None:
        self._look = look
        self._interval_seconds = interval_seconds
        self._most_samples = most_samples
        self._clock = clock

    def start(self) -> None:
        """Take the first sample, then one at each interval."""
        raise NotImplementedError

    def stop(self) -> tuple[tuple[Sample, ...], SampleSummary]:
        """Take the last sample (its place is always kept) and end the thread; waits for one look at most."""
        raise NotImplementedError
