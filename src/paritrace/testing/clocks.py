"""Clocks that tests set by hand; sleeping moves them."""

from paritrace.clock import Clock


class ManualClock(Clock):
    """Stands still until it is moved; `sleep` moves both readings and is counted."""

    def __init__(self, *, wall_ns: int = 1_764_400_000_000_000_000, monotonic_ns: int = 1_000_000_000) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self.slept_seconds: list[float] = []

    def wall_ns(self) -> int:
        return self._wall_ns

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def sleep(self, seconds: float) -> None:
        self.slept_seconds.append(seconds)
        self.move(round(seconds * 1e9))

    def move(self, nanoseconds: int) -> None:
        """Let time pass on both clocks."""
        self._wall_ns += nanoseconds
        self._monotonic_ns += nanoseconds

    def step_wall(self, nanoseconds: int) -> None:
        """Step the wall clock alone, forwards or backwards, as a time service does."""
        self._wall_ns += nanoseconds
