"""Ends the ranks of a generation within the bounds, and keeps the main thread from nothing else (SE-12, SE-21)."""

from collections.abc import Mapping

from paritrace.clock import SYSTEM, Clock
from paritrace.session.coordinator.generations import Generations
from paritrace.session.coordinator_events import FailStop
from paritrace.session.coordinator_record import Coordinator

_NS = 1_000_000_000
_FAR_SECONDS = 3600.0


class Stopping:
    """At a fail-stop: stacks, word and SIGTERM at once, SIGKILL after the grace, the last word once all are reaped."""

    def __init__(self, generations: Generations, bounds: Mapping[str, float], *, clock: Clock = SYSTEM) -> None:
        self._generations = generations
        self._grace_ns = int(bounds["term_grace"] * _NS)
        self._reap_ns = int(bounds["reap"] * _NS)
        self._clock = clock
        self._kill_at: int | None = None
        self._done_at: int | None = None
        self.report: str | None = None
        self.root_cause: str | None = None

    def begin(self, action: FailStop, machine: Coordinator) -> None:
        """Have all ranks end; a second fail-stop of a generation changes nothing."""
        if self._done_at is not None:
            return
        now = self._clock.monotonic_ns()
        self._kill_at, self._done_at = now + self._grace_ns, now + self._grace_ns + self._reap_ns
        self._generations.halt(action.why)

    def next_in(self) -> float:
        """Return the seconds until there is something to do."""
        due = min((at for at in (self._kill_at, self._done_at) if at is not None), default=None)
        if due is None:
            return _FAR_SECONDS
        return max(0.0, (due - self._clock.monotonic_ns()) / _NS)

    def look(self) -> None:
        """Do what is due."""
        now = self._clock.monotonic_ns()
        if self._done_at is None:
            return
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._generations.kill()
        if now >= self._done_at or not self._generations.living():
            self._kill_at = self._done_at = None

    def forget(self) -> None:
        """A new generation begins: nothing of the last one is under way any more."""
        self._kill_at = self._done_at = None
        self.report = self.root_cause = None
