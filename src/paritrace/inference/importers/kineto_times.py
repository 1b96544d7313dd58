"""Times of a trace: decimal microseconds to integer nanoseconds, exactly, never through a float (IN-10)."""

from decimal import ROUND_FLOOR, Context, Decimal

from msgspec import Struct

_EXACT = Context(prec=60, rounding=ROUND_FLOOR)
_LARGEST_EXPONENT = 16  # of microseconds: with more, nanoseconds leave 64 bits
LARGEST_NS = 1 << 62  # room for the base time to be added
_NS_DIGITS = 3


class Times(Struct):
    """What was met in times that are no whole nanoseconds of this age, counted."""

    below_ns: int = 0  # parts of a nanosecond, cut off
    unusable: int = 0  # beyond 64 bits


def nanoseconds(microseconds: Decimal, /, *, times: Times) -> int | None:
    """Return whole nanoseconds, rounded down; None, counted, for what no clock tells."""
    if microseconds.adjusted() > _LARGEST_EXPONENT:
        times.unusable += 1
        return None
    scaled = microseconds.scaleb(_NS_DIGITS, _EXACT)
    try:
        found = int(scaled)
    except (ValueError, OverflowError):  # text that spells no number, or infinity
        times.unusable += 1
        return None
    if found != scaled:
        times.below_ns += 1
        found = int(scaled.to_integral_value(ROUND_FLOOR, _EXACT))
    if -LARGEST_NS < found < LARGEST_NS:
        return found
    times.unusable += 1
    return None
