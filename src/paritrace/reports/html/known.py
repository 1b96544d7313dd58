"""Numbers of a page that may not be known: a gap is said by its name, never shown as 0 (P1)."""

from typing import Any

from paritrace.evidence.gaps import Gap

NS_PER_MS = 1_000_000


def known(value: int | float | Gap[Any] | None, /) -> str:
    """Returns a number with its thousands apart, or why there is none."""
    if value is None:
        return "not told"
    return f"unknown ({value.gap.value})" if isinstance(value, Gap) else f"{value:,}"


def duration(ns: int | Gap[Any], /) -> str:
    """Returns nanoseconds as milliseconds, to the microsecond; or why there are none."""
    return known(ns) if isinstance(ns, Gap) else f"{ns / NS_PER_MS:,.3f} ms"
