"""Timers by name, set anew or cleared, and which of them have run out: used by the main thread alone (P5)."""

from paritrace.clock import SYSTEM, Clock

_NS = 1_000_000_000


class Timers:
    """A handful at a time; a timer that was set anew or cleared never comes."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._at: dict[str, int] = {}

    def set(self, name: str, seconds: float | None) -> None:
        """Set a timer in place of an earlier one of this name; None clears it."""
        if seconds is None:
            self._at.pop(name, None)
        else:
            self._at[name] = self._clock.monotonic_ns() + int(seconds * _NS)

    def due(self) -> tuple[str, ...]:
        """Return the timers that have run out, the earliest first, and forget them."""
        now = self._clock.monotonic_ns()
        names = sorted((name for name, at in self._at.items() if at <= now), key=lambda name: self._at[name])
        for name in names:
            del self._at[name]
        return tuple(names)

    def next_in(self, most_seconds: float) -> float:
        """Return the seconds until the next one runs out, `most_seconds` at most, never below 0."""
        if not self._at:
            return most_seconds
        return min(most_seconds, max(0.0, (min(self._at.values()) - self._clock.monotonic_ns()) / _NS))

    def clear(self) -> None:
        """Forget all."""
        self._at.clear()
