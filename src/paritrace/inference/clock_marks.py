"""Readings of a clock as named ranges of a trace: what one is called, and what they say of two clocks (IN-16): pure.

A mark is a range whose name bears a reading that was taken before the range began and after the mark before it had
begun. So in the trace's clock the reading lies between the beginnings of two marks: measured, and how surely is known.
"""

import re

from msgspec import Struct

_PREFIX = "paritrace.clock"
_NAME = re.compile(re.escape(_PREFIX) + r"/(\d{1,19})\.(\d{1,4})/(\d{1,19})/(.+)", re.ASCII)
_ROUNDED_NS = 1  # a trace writes its times in thousandths of a microsecond


class Mark(Struct, frozen=True):
    """The `number`-th mark of a series: `clock` was read as `reading_ns` just before it."""

    series: int
    number: int
    reading_ns: int
    clock: str

    @property
    def name(self) -> str:
        """The name of its range."""
        return f"{_PREFIX}/{self.series}.{self.number}/{self.reading_ns}/{self.clock}"


class Measured(Struct, frozen=True):
    """`clock = the trace's + offset_ns`, within `uncertainty_ns`, between the first and the last of `num_series`."""

    clock: str
    offset_ns: int
    uncertainty_ns: int
    first_ns: int
    last_ns: int
    num_series: int


class _Bracket(Struct, frozen=True):
    """Between two times of the trace a clock was read."""

    begin_ns: int
    end_ns: int
    reading_ns: int

    @property
    def width_ns(self) -> int:
        return self.end_ns - self.begin_ns


def mark_of(name: str, /) -> Mark | None:
    """Return the mark that a range's name is of; None for every other name."""
    found = _NAME.fullmatch(name)
    return None if found is None else Mark(int(found[1]), int(found[2]), int(found[3]), found[4])


class Marks:
    """Gathers the marks of one trace, in any order."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, str, int], dict[int, tuple[int, int]]] = {}

    def see(self, name: str, /, *, thread: str, start_ns: int) -> None:
        """Take a range of a thread; those that are no marks are passed over."""
        mark = mark_of(name)
        if mark is not None:
            series = self._starts.setdefault((mark.clock, thread, mark.series), {})
            series[mark.number] = (start_ns, mark.reading_ns)

    def measured(self) -> tuple[Measured, ...]:
        """Return how each clock that was read stands to the trace's; all its series count, each by its best reading."""
        by_clock: dict[str, list[_Bracket]] = {}
        for (clock, _, _), starts in sorted(self._starts.items()):
            brackets = _brackets(starts)
            if brackets:
                by_clock.setdefault(clock, []).append(min(brackets, key=lambda one: one.width_ns))
        return tuple(_measured(clock, brackets) for clock, brackets in by_clock.items())


def _brackets(starts: dict[int, tuple[int, int]]) -> list[_Bracket]:
    return [
        _Bracket(starts[number - 1][0], start_ns, reading_ns)
        for number, (start_ns, reading_ns) in starts.items()
        if number - 1 in starts and starts[number - 1][0] <= start_ns
    ]


def _measured(clock: str, brackets: list[_Bracket]) -> Measured:
    """Return the one offset that lies amid all that the brackets allow, so that a drift between them is inside."""
    least = min(one.reading_ns - one.end_ns for one in brackets)
    most = max(one.reading_ns - one.begin_ns for one in brackets)
    offset_ns = (least + most) // 2
    return Measured(
        clock=clock,
        offset_ns=offset_ns,
        uncertainty_ns=most - offset_ns + _ROUNDED_NS,
        first_ns=min(one.begin_ns for one in brackets),
        last_ns=max(one.end_ns for one in brackets),
        num_series=len(brackets),
    )
