"""Draws the metrics of a session over its steps: a mark for each sample, and nothing between two of them (SU-10).

A sample is of one step; the steps between two were not looked at. So there are no lines, across a gap or a load least
of all: marks of steps that led to the present state are strong, those that a load or a new generation went back behind
are pale.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from paritrace.clock import rfc3339
from paritrace.reports.html.chart import Tick
from paritrace.session.metrics import KeptMetrics, Sample
from paritrace.session.segments import Segment, lineage_of
from paritrace.session.words import kept_words

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 400.0, 170.0, 58.0, 10.0, 16.0, 146.0
COLUMNS = 160  # of a chart: what falls into one is drawn by its lowest and its highest
MOST_CHARTS = 12
MOST_ROWS = 50
MOST_BOUNDARIES = 40
TICKS = 4
LARGEST_SPAN = 1e300  # of an axis with round ticks; one that is longer has its two ends


class Boundary(Struct, frozen=True):
    """Where a segment begins."""

    x: float
    text: str


class MetricChart(Struct, frozen=True):
    """One metric. `strong`, `pale`, `not_finite`: the marks, each as the path of an SVG; `said`: the same in words."""

    name: str
    strong: str
    pale: str
    not_finite: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    boundaries: tuple[Boundary, ...]
    said: str


class SampleRow(Struct, frozen=True):
    """A sample as a row of a table. `values` stand in the order of the charts, "" where there is none."""

    step: int
    at: str
    generation: int
    segment: str
    values: tuple[str, ...]


class MetricsShown(Struct, frozen=True):
    """All that is shown of a session's metrics. `said`: what the charts show and what they leave out."""

    charts: tuple[MetricChart, ...]
    rows: tuple[SampleRow, ...]
    said: tuple[str, ...]
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    top: float = TOP
    bottom: float = BOTTOM


class _Placed(Struct, frozen=True):
    sample: Sample
    segment: Segment | None
    led_here: bool  # the step lies in the lineage of the present state


def metrics_shown(kept: KeptMetrics, segments: Sequence[Segment], /) -> MetricsShown:
    """Returns charts and rows of the samples; `segments`: all of the session, in their order."""
    placed = tuple(_placed(kept.samples, segments))
    names = tuple(dict.fromkeys(name for one in placed for name in one.sample.metrics))
    if not names:
        return MetricsShown((), (), ("No sample of a metric was kept.",))
    across = _Axis(float(one.sample.step) for one in placed)
    boundaries = tuple(_boundaries(segments, across))
    shown = names[:MOST_CHARTS]
    charts = tuple(_chart(name, placed, across, boundaries[-MOST_BOUNDARIES:]) for name in shown)
    rows = tuple(_row(one, shown) for one in placed[: -MOST_ROWS - 1 : -1])
    return MetricsShown(charts, rows, tuple(_said(kept, placed, names, boundaries)))


def _placed(samples: Sequence[Sample], segments: Sequence[Segment]) -> Iterator[_Placed]:
    by_generation: dict[int, list[Segment]] = {}
    for one in segments:
        by_generation.setdefault(one.generation, []).append(one)
    pieces = {piece.segment.number: piece for piece in lineage_of(tuple(segments))}
    for sample in samples:
        segment = _segment_of(sample, by_generation)
        piece = None if segment is None else pieces.get(segment.number)
        led = (
            piece is not None
            and piece.first_step <= sample.step
            and (piece.end_step is None or sample.step < piece.end_step)
        )
        yield _Placed(sample, segment, led)


def _segment_of(sample: Sample, by_generation: Mapping[int, list[Segment]]) -> Segment | None:
    found = by_generation.get(sample.generation, [])
    place = bisect_right(found, sample.epoch, key=lambda one: one.first_epoch)
    segment = found[place - 1] if place else None
    return segment if segment is not None and sample.epoch <= segment.last_epoch else None


class _Axis:
    """The range of values that are finite, and places on it from 0 to 1; nothing overflows, however far they lie."""

    def __init__(self, values: Iterable[float]) -> None:
        finite = [value for value in values if math.isfinite(value)]
        self.low, self.high = min(finite, default=0.0), max(finite, default=0.0)

    def place(self, value: float) -> float:
        span = self.high / 2 - self.low / 2
        return 0.5 if span <= 0.0 else min(max((value / 2 - self.low / 2) / span, 0.0), 1.0)

    def ticks(self) -> Iterator[float]:
        """Round values, four or so; the two ends where there are none."""
        span = self.high - self.low
        if not 1 / LARGEST_SPAN < span < LARGEST_SPAN:
            yield from dict.fromkeys((self.low, self.high))
            return
        power = 10.0 ** math.floor(math.log10(span / TICKS))
        every = next(power * step for step in (1, 2, 5, 10) if span / (power * step) <= TICKS)
        first = math.ceil(self.low / every)
        yield from (number * every for number in range(first, first + TICKS + 2) if number * every <= self.high)


def _x(across: _Axis, step: float) -> float:
    return round(LEFT + across.place(step) * (WIDTH - LEFT - RIGHT), 1)


def _chart(name: str, placed: Sequence[_Placed], across: _Axis, boundaries: tuple[Boundary, ...]) -> MetricChart:
    told = [(one, float(one.sample.metrics[name])) for one in placed if name in one.sample.metrics]
    finite = [(one, value) for one, value in told if math.isfinite(value)]
    others = sorted({_x(across, one.sample.step) for one, value in told if not math.isfinite(value)})
    up = _Axis(value for _, value in finite)
    drawn = [
        [(_x(across, one.sample.step), value) for one, value in finite if one.led_here is led] for led in (True, False)
    ]
    strong, pale = ("".join(_marks(points, up)) for points in drawn)
    return MetricChart(
        name=name,
        strong=strong,
        pale=pale,
        not_finite="".join(f"M{x - 3:g} {TOP - 11:g}l6 6m0-6l-6 6" for x in _apart(others)),
        x_ticks=tuple(Tick(_x(across, step), f"{step:,.0f}") for step in across.ticks() if step.is_integer()),
        y_ticks=tuple(Tick(_y(up, value), f"{value:.4g}") for value in up.ticks()) if finite else (),
        boundaries=boundaries,
        said=_in_words(told, finite, across, num_drawn=strong.count("M") + pale.count("M")),
    )


def _y(up: _Axis, value: float) -> float:
    return round(BOTTOM - up.place(value) * (BOTTOM - TOP), 1)


def _marks(points: Iterable[tuple[float, float]], up: _Axis) -> Iterator[str]:
    """The lowest and the highest of each column, as points of a path."""
    columns: dict[int, list[tuple[float, float]]] = {}
    for x, value in points:
        held = columns.setdefault(int((x - LEFT) / (WIDTH - LEFT - RIGHT) * COLUMNS), [(x, value), (x, value)])
        held[0] = min(held[0], (x, value), key=lambda one: one[1])
        held[1] = max(held[1], (x, value), key=lambda one: one[1])
    for held in columns.values():
        for x, value in dict.fromkeys(held):
            yield f"M{x:g} {_y(up, value):g}h0"


def _apart(places: Sequence[float]) -> Iterator[float]:
    """Places that do not cover each other."""
    last = -math.inf
    for place in places:
        if place - last >= (WIDTH - LEFT - RIGHT) / COLUMNS:
            last = place
            yield place


def _in_words(
    told: Sequence[tuple[_Placed, float]],
    finite: Sequence[tuple[_Placed, float]],
    across: _Axis,
    *,
    num_drawn: int,
) -> str:
    words = f"{len(told):,} {'sample' if len(told) == 1 else 'samples'}, steps {across.low:,.0f} to {across.high:,.0f}"
    if finite:
        values = [value for _, value in finite]
        words += f"; lowest {min(values):.4g}, highest {max(values):.4g}, last {told[-1][1]:.4g}"
    if num_drawn < len(finite):
        words += f"; {num_drawn:,} drawn, the lowest and the highest of each place"
    if len(finite) < len(told):
        words += f"; {len(told) - len(finite):,} not finite, the crosses above"
    return words


def _boundaries(segments: Sequence[Segment], across: _Axis) -> Iterator[Boundary]:
    for piece in lineage_of(tuple(segments))[1:]:
        if across.low <= piece.first_step <= across.high:
            one = piece.segment
            how = f"{one.begin.value} {one.checkpoint}" if one.checkpoint else one.begin.value
            text = f"segment {one.number} begins at step {piece.first_step:,}: {how}, revision {one.config_revision}"
            yield Boundary(_x(across, piece.first_step), text)


def _row(one: _Placed, names: Sequence[str]) -> SampleRow:
    sample = one.sample
    return SampleRow(
        step=sample.step,
        at=rfc3339(sample.unix_ns),
        generation=sample.generation,
        segment="not known" if one.segment is None else f"{one.segment.number}" + ("" if one.led_here else ", left"),
        values=tuple(_text(sample.metrics.get(name)) for name in names),
    )


def _text(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.6g}"


def _said(
    kept: KeptMetrics, placed: Sequence[_Placed], names: Sequence[str], boundaries: Sequence[Boundary]
) -> Iterator[str]:
    yield (
        "Each mark is one sample: what rank 0 told of its latest step, about once a second and at the end of a run."
        " Steps between two samples were not looked at, and nothing is drawn there."
    )
    if any(not one.led_here for one in placed):
        yield "Pale marks are of steps that a load, a rebuild or a new generation went back behind."
    if boundaries:
        left = len(boundaries) - MOST_BOUNDARIES
        yield "A dashed line is where a segment begins" + (
            f"; {left:,} earlier ones are not drawn." if left > 0 else "."
        )
    yield f"{kept_words(kept)}."
    if len(names) > MOST_CHARTS:
        yield f"Showing {MOST_CHARTS} of {len(names):,} metrics; `paritrace session metrics` has all."
    left_out = max(one.sample.left_out for one in placed)
    if left_out:
        yield f"Up to {left_out:,} metrics of a step are no numbers, or too many, and are not kept."
