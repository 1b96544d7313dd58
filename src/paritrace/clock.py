"""Clocks as arguments: wall and monotonic nanoseconds, a bounded sleep and the one spelling of times for people."""

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR_NS = 253_402_300_799 * 1_000_000_000  # 9999-12-31T23:59:59Z, the last second RFC 3339 can spell


class Clock:
    """The clocks of this process. Tests pass one from `paritrace.testing.clocks`."""

    def wall_ns(self) -> int:
        """Return nanoseconds since the Unix epoch; may step back (EV-4)."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Return nanoseconds of the monotonic clock: the only one that gives durations (EV-4)."""
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        """Wait; every caller has a deadline (P5)."""
        time.sleep(seconds)


SYSTEM = Clock()


def rfc3339(unix_ns: int) -> str:
    """Return `unix_ns` as RFC 3339 in UTC with milliseconds and `Z`, cut off, not rounded (EV-20).

    Raises:
        ValueError: the time is outside the years 1970 to 9999.
    """
    if not 0 <= unix_ns <= _LAST_YEAR_NS:
        raise ValueError(f"{unix_ns} ns is outside the years 1970 to 9999")
    moment = _EPOCH + timedelta(milliseconds=unix_ns // 1_000_000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
