"""Draws the error ledger: order of execution against the logarithm of the error, beside what was expected (CP-16)."""

import math
from collections.abc import Iterator, Sequence

from paritrace.compare.result import Comparison, Ledger, LedgerEntry
from paritrace.reports.html.chart import BandPart, Chart, Dot, LedgerRow, Span, Tick
from paritrace.reports.html.page import CallRef
from paritrace.reports.wording import figure, module_or_root, short_function

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 1000.0, 330.0, 62.0, 300.0, 14.0
LEAST, MOST = -20, 6  # powers of ten that are drawn; what lies beyond is drawn at the edge, and its text says it
WIDEST_COLUMN = 40.0
LETTER = 6.2  # units that a letter takes at most
JUDGED = (
    "Each mark is the output of a paired call, in order of execution, rank by rank: a dot inside round-off, a cross "
    "beyond it, by its error or by another figure that the table names. The line is the typical error of the "
    "baseline's draws, the band reaches to the largest that stays inside."
)
UNJUDGED = (
    "Each dot is the output of a paired call that differs, in order of execution, rank by rank. No baseline was "
    "perturbed, so nothing says which of these errors round-off explains."
)
HATCHED = " Hatched: calls without a partner stand before this output."


def chart(comparison: Comparison, /) -> Chart | None:
    """Returns the chart with its table; None where no size was measured."""
    ledger = comparison.ledger
    if ledger is None or not ledger.entries:
        return None
    entries = ledger.entries
    judged = any(entry.beyond is not None for entry in entries)
    hatched = any(entry.undetermined_before for entry in entries)
    scale = _Scale(entries)
    return Chart(
        caption=(JUDGED if judged else UNJUDGED) + (HATCHED if hatched else ""),
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        bottom=BOTTOM,
        y_ticks=tuple(scale.ticks()),
        phases=tuple(_phases(entries, scale)),
        hatched=tuple(_hatched(entries, scale)),
        band=tuple(_band(entries, scale)),
        dots=tuple(_dots(entries, scale)),
        rows=tuple(_row(number, entry) for number, entry in enumerate(entries, 1)),
        left_out=_left_out(ledger),
    )


class _Scale:
    """Places of entries across, and of errors up and down."""

    def __init__(self, entries: Sequence[LedgerEntry]) -> None:
        powers = [power for entry in entries for power in _powers(entry)]
        self.low = math.floor(min(powers, default=-8.0))
        above = any(entry.error is None for entry in entries)  # what is not finite stands above all that is
        self.high = max(self.low + 2, math.ceil(max(powers, default=0.0)) + above)
        self.step = min(WIDEST_COLUMN, (WIDTH - LEFT) / len(entries))

    def x(self, place: float) -> float:
        return round(LEFT + place * self.step, 2)

    def y(self, error: float) -> float:
        power = min(max(math.log10(error), self.low), self.high) if error > 0.0 else self.low
        return round(BOTTOM - (power - self.low) / (self.high - self.low) * (BOTTOM - TOP), 2)

    def ticks(self) -> Iterator[Tick]:
        every = max(1, math.ceil((self.high - self.low) / 8))
        for power in range(self.low, self.high + 1, every):
            yield Tick(self.y(10.0**power), f"1e{power:+03d}")


def _powers(entry: LedgerEntry) -> Iterator[float]:
    for error in (entry.error, entry.expected, entry.inside_up_to):
        if error is not None and error > 0.0:
            yield min(max(math.log10(error), LEAST), MOST)


def _phases(entries: Sequence[LedgerEntry], scale: _Scale) -> Iterator[Span]:
    """One span for each rank, step and phase; its name where there is room."""
    begin = 0
    for place, entry in enumerate(entries):
        if place + 1 == len(entries) or _moment(entries[place + 1]) != _moment(entry):
            width = round((place + 1 - begin) * scale.step, 2)
            yield Span(scale.x(begin), width, _fitting(entry, width))
            begin = place + 1


def _fitting(entry: LedgerEntry, width: float) -> str:
    """The longest name of a span for which there is room."""
    step = f"step {entry.step} {entry.phase}"
    names = (f"rank {entry.rank}, {step}", step, entry.phase, f"{entry.step}")
    return next((name for name in names if len(name) * LETTER < width), "")


def _moment(entry: LedgerEntry) -> tuple[int, int, str]:
    return entry.rank, entry.step, entry.phase


def _hatched(entries: Sequence[LedgerEntry], scale: _Scale) -> Iterator[Span]:
    for place, entry in enumerate(entries):
        if entry.undetermined_before:
            text = f"{entry.undetermined_before:,} calls without a partner before {_where(entry)}"
            width = round(max(1.5, scale.step / 3), 2)
            yield Span(round(scale.x(place) - width / 2, 2), width, text)


def _band(entries: Sequence[LedgerEntry], scale: _Scale) -> Iterator[BandPart]:
    for place, entry in enumerate(entries):
        if entry.expected is not None and entry.inside_up_to is not None:
            top, middle = scale.y(entry.inside_up_to), scale.y(entry.expected)
            yield BandPart(scale.x(place), round(scale.step, 2), min(top, middle), BOTTOM, middle)


def _dots(entries: Sequence[LedgerEntry], scale: _Scale) -> Iterator[Dot]:
    for place, entry in enumerate(entries):
        if entry.error == 0.0 and not entry.beyond:
            continue  # there is no logarithm of nothing, and the table has it
        error = 10.0**scale.high if entry.error is None else entry.error
        text = f"{_where(entry)}: {_status(entry)}, error {_error(entry)}"
        yield Dot(scale.x(place + 0.5), scale.y(error), _name(entry), text, _call(entry))


def _name(entry: LedgerEntry) -> str:
    return "bits" if entry.beyond is None else "beyond" if entry.beyond else "inside"


def _status(entry: LedgerEntry) -> str:
    if entry.beyond is None:
        return "differs"
    if entry.error == 0.0 and not entry.beyond:
        return "samples agree"
    by = f" by {entry.figure}" if entry.beyond and entry.figure not in ("", "error") else ""
    return f"beyond{by}" if entry.beyond else "inside"


def _row(number: int, entry: LedgerEntry) -> LedgerRow:
    return LedgerRow(
        order=number,
        where=_where(entry),
        error=_error(entry),
        expected="" if entry.expected is None else figure(entry.expected),
        inside_up_to="" if entry.inside_up_to is None else figure(entry.inside_up_to),
        status=_status(entry),
        call=_call(entry),
    )


def _error(entry: LedgerEntry) -> str:
    return "not finite" if entry.error is None else figure(entry.error)


def _where(entry: LedgerEntry) -> str:
    module = f"{module_or_root(entry.module)} ({short_function(entry.function)})"
    return f"rank {entry.rank}, step {entry.step} {entry.phase}, {module}"


def _call(entry: LedgerEntry) -> CallRef:
    return CallRef("baseline", entry.rank, entry.baseline_record_id)


def _left_out(ledger: Ledger) -> str:
    shown = len(ledger.entries)
    if shown >= ledger.total:
        return ""
    return f"showing {shown:,} of {ledger.total:,} outputs, evenly and those furthest out; comparison.json has the same"
