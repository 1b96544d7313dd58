"""Names and values of a run as a trace can hold them: bounded, valid, and never another value (SU-8): pure."""

from math import isfinite, isnan

from paritrace.reports.harmless import harmless

LONGEST = 1000  # characters of a name
EXACT = 1 << 53  # beyond it an integer is shown as another one: as hex it is not


def text(value: str, /) -> str:
    """Returns a name that is valid UTF-8, printable and at most LONGEST characters and a note long."""
    shown = value if len(value) <= LONGEST else f"{value[:LONGEST]}… ({len(value):,} characters)"
    return harmless(shown)


def number(value: float, /) -> float | str:
    """Returns a finite number as it is, and in words what the format would silently drop."""
    if isfinite(value):
        return value
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def integer(value: int, /) -> int | str:
    """Returns an integer that every reader shows exactly, and another one as hex digits."""
    return value if -EXACT < value < EXACT else hex(value)
