"""Records of a timeline of lanes as it is drawn, in units of the view box; times to places on one clock."""

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from paritrace.reports.html.chart import Tick

WIDTH, LEFT, RIGHT = 1000.0, 168.0, 14.0
TOP, LANE, BAR = 22.0, 26.0, 16.0
NARROWEST = 1.5  # units of a bar: what is shorter is still seen
NS_PER_MS = 1_000_000
TICKS = 6
LONGEST_NAME = 24


class Stretch(Struct, frozen=True):
    """Something with a begin and an end on the clock of the timeline; `href` "" leads nowhere."""

    start_ns: int
    end_ns: int
    text: str
    href: str = ""


class Bar(Struct, frozen=True):
    x: float
    y: float
    width: float
    height: float
    text: str
    href: str


class Lane(Struct, frozen=True):
    """Bars of one kind beside each other. `kind` is the colour's: party | stage | iteration."""

    name: str
    kind: str
    middle: float
    bars: tuple[Bar, ...]


class Lanes(Struct, frozen=True):
    """A timeline; `said`: what it shows, by which clock, and what is not in it."""

    width: float
    height: float
    left: float
    ticks: tuple[Tick, ...]
    lanes: tuple[Lane, ...]
    said: tuple[str, ...]


Named = tuple[str, str, Sequence[Stretch]]  # name, kind, what is in it


def lanes(named: Sequence[Named], *, said: tuple[str, ...]) -> Lanes | None:
    """Returns the timeline; None where nothing has a place on it."""
    filled = [one for one in named if one[2]]
    stretches = [one for _, _, held in filled for one in held]
    if not stretches:
        return None
    begin = min(one.start_ns for one in stretches)
    length = max(1, max(one.end_ns for one in stretches) - begin)
    scale = (WIDTH - LEFT - RIGHT) / length
    return Lanes(
        width=WIDTH,
        height=TOP + LANE * len(filled) + 4.0,
        left=LEFT,
        ticks=tuple(_ticks(length, scale)),
        lanes=tuple(_lane(place, one, begin=begin, scale=scale) for place, one in enumerate(filled)),
        said=said,
    )


def _lane(place: int, named: Named, *, begin: int, scale: float) -> Lane:
    name, kind, held = named
    top = TOP + LANE * place + (LANE - BAR) / 2
    bars = tuple(
        Bar(
            x=round(LEFT + (one.start_ns - begin) * scale, 2),
            y=top,
            width=round(max(NARROWEST, (one.end_ns - one.start_ns) * scale), 2),
            height=BAR,
            text=one.text,
            href=one.href,
        )
        for one in held
    )
    short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return Lane(short, kind, top + BAR / 2, bars)


def _ticks(length: int, scale: float) -> Iterator[Tick]:
    """Round milliseconds from the begin on."""
    whole = length / NS_PER_MS
    power = 10.0 ** math.floor(math.log10(whole / TICKS))
    every = next(power * step for step in (1, 2, 5, 10) if whole / (power * step) <= TICKS)
    places = max(0, -math.floor(math.log10(every)))
    for number in range(math.floor(whole / every) + 1):
        at = number * every
        yield Tick(round(LEFT + at * NS_PER_MS * scale, 2), f"{at:,.{places}f} ms")
