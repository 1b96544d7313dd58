"""Paces bytes to a rate: a token bucket that holds one MiB (ST-7, PF-6)."""

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import RequestError

CHUNK_BYTES = 1 << 18  # what is taken at once; smaller than 1 MiB, so that no second is much fuller than the others
MIB = 1 << 20
BURST_BYTES = MIB  # makes good a late wake-up of 32 ms at 32 MiB/s; the busiest second is 1.04 of the cap
_SECOND_NS = 1_000_000_000


class Throttle:
    """Lets `bytes_per_second` through; None is no limit. Used by one thread at a time.

    What was not used is kept up to one MiB, so an idle time, a suspended machine or a clock that jumps buys no burst.
    """

    def __init__(self, bytes_per_second: float | None, *, clock: Clock = SYSTEM) -> None:
        if bytes_per_second is not None and not 0 < bytes_per_second < float("inf"):
            raise RequestError(
                f"{bytes_per_second} bytes per second is no rate",
                code="bad_rate",
                fix="give a positive number of MiB per second",
            )
        self._rate = bytes_per_second
        self._clock = clock
        self._due_ns = 0

    def take(self, num_bytes: int) -> None:
        """Wait until `num_bytes` more may pass: at most (`num_bytes` + one chunk) / rate seconds in all."""
        while self._rate is not None and num_bytes > 0:
            self._wait(min(num_bytes, CHUNK_BYTES), self._rate)
            num_bytes -= CHUNK_BYTES

    def _wait(self, num_bytes: int, rate: float) -> None:
        now = self._clock.monotonic_ns()
        unused = round(BURST_BYTES / rate * _SECOND_NS)
        due = max(self._due_ns, now - unused)
        self._due_ns = due + round(num_bytes / rate * _SECOND_NS)
        if due > now:
            self._clock.sleep((due - now) / _SECOND_NS)
