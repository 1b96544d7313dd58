"""Which clocks share a time line: the same one, or aligned by a record; never because both begin at 0 (IN-19): pure."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from paritrace.inference.records import ClockAlignment

MOST_NS = 1 << 62  # of a whole trace: a trace processor counts in 63 bits
LEAST_GAP_NS = 1_000_000


class Span(Struct, frozen=True):
    """The first and the last time that events tell by one clock, in ns of that clock."""

    first_ns: int
    last_ns: int


class Line(Struct, frozen=True):
    """Clocks on one time line. `offsets`: by clock, what is added to its times to be times of the trace."""

    offsets: dict[str, int]
    uncertainty_ns: int  # the largest sum of uncertainties on the way from one of these clocks to the first


class TimeLines(Struct, frozen=True):
    """Lines one behind the other, so that nothing of two of them seems to be at the same time.

    `unused`: why alignments that were recorded join no clocks: by the clocks' names, in words.
    """

    lines: tuple[Line, ...]
    unused: tuple[str, ...]


class _Edge(Struct, frozen=True):
    to: str
    offset_ns: int
    uncertainty_ns: int


def time_lines(
    spans: Mapping[str, Span], /, *, alignments: Iterable[ClockAlignment], leading: Iterable[str] = ()
) -> TimeLines:
    """Returns where the times of each clock lie in a trace that begins at 0.

    Args:
        spans: by clock; clocks that only alignments name lie between others and get no line.
        leading: clocks whose lines come first.

    An alignment counts where all times of its clock lie in its validity, and where no other one of the same two clocks
    disagrees beyond the uncertainty of both.
    """
    edges, unused = _edges(spans, alignments)
    first = set(leading)
    order = sorted(spans, key=lambda clock: (clock not in first, clock))
    placed: set[str] = set()
    lines: list[Line] = []
    begin = 0
    for clock in order:
        if clock in placed:
            continue
        reached = _reached(clock, edges)
        offsets = {name: offset for name, (offset, _) in reached.items() if name in spans}
        placed |= set(offsets)
        earliest = min(spans[name].first_ns + offset for name, offset in offsets.items())
        length = max(spans[name].last_ns + offset for name, offset in offsets.items()) - earliest
        shifted = {name: offset - earliest + begin for name, offset in offsets.items()}
        lines.append(Line(shifted, max(reached[name][1] for name in offsets)))
        begin += length + max(LEAST_GAP_NS, length // 10)
    return TimeLines(tuple(lines), unused)


def behind(lines: TimeLines, length_ns: int, /) -> TimeLines:
    """Returns the lines with all but the first one later by so much."""
    first, *others = lines.lines
    gap = length_ns + max(LEAST_GAP_NS, length_ns // 10)
    later = (replace(one, offsets={name: at + gap for name, at in one.offsets.items()}) for one in others)
    return replace(lines, lines=(first, *later))


def _edges(
    spans: Mapping[str, Span], alignments: Iterable[ClockAlignment]
) -> tuple[dict[str, list[_Edge]], tuple[str, ...]]:
    by_pair: dict[tuple[str, str], list[ClockAlignment]] = {}
    unused: list[str] = []
    for one in alignments:
        source, target = one.from_clock_domain, one.to_clock_domain
        if _holds(spans.get(source), one):
            by_pair.setdefault((source, target), []).append(one)
        else:
            unused.append(f"{source} to {target}: holds for a part of its times only")
    edges: dict[str, list[_Edge]] = {}
    for (source, target), several in sorted(by_pair.items()):
        best = min(several, key=lambda one: (one.uncertainty_ns, one.offset_ns))
        if any(abs(one.offset_ns - best.offset_ns) > one.uncertainty_ns + best.uncertainty_ns for one in several):
            unused.append(f"{source} to {target}: {len(several)} alignments disagree")
            continue
        edges.setdefault(source, []).append(_Edge(target, -best.offset_ns, best.uncertainty_ns))
        edges.setdefault(target, []).append(_Edge(source, best.offset_ns, best.uncertainty_ns))
    return edges, tuple(sorted(set(unused)))


def _holds(span: Span | None, one: ClockAlignment) -> bool:
    if span is None:
        return True
    begins = one.valid_from_ns is None or one.valid_from_ns <= span.first_ns
    return begins and (one.valid_to_ns is None or span.last_ns <= one.valid_to_ns)


def _reached(start: str, edges: Mapping[str, list[_Edge]]) -> dict[str, tuple[int, int]]:
    """By clock: what is added to its times to be times of `start`, and how sure that is; fewest alignments first."""
    reached = {start: (0, 0)}
    waiting = [start]
    for clock in waiting:
        offset, uncertainty = reached[clock]
        for edge in edges.get(clock, ()):
            if edge.to not in reached:
                reached[edge.to] = (offset + edge.offset_ns, uncertainty + edge.uncertainty_ns)
                waiting.append(edge.to)
    return reached
