"""Records of a chart as it is drawn: shapes in units of the view box, texts and links (CP-16)."""

from msgspec import Struct

from paritrace.reports.html.page import CallRef


class Tick(Struct, frozen=True):
    at: float
    text: str


class Dot(Struct, frozen=True):
    """One measured output. `name` is the colour's: inside | beyond | bits | undetermined."""

    x: float
    y: float
    name: str
    text: str  # what it is, for a reader and as its title
    call: CallRef


class BandPart(Struct, frozen=True):
    """What was expected at one output: from the typical error to the largest that stays inside."""

    x: float
    width: float
    top: float
    bottom: float
    middle: float


class Span(Struct, frozen=True):
    """A stretch along the axis: a step and phase, or calls that are undetermined."""

    x: float
    width: float
    text: str


class LedgerRow(Struct, frozen=True):
    """The chart as a table, one row for each dot."""

    order: int
    where: str
    error: str
    expected: str
    inside_up_to: str
    status: str
    call: CallRef


class Chart(Struct, frozen=True):
    caption: str
    width: float
    height: float
    left: float
    bottom: float
    y_ticks: tuple[Tick, ...]
    phases: tuple[Span, ...]
    hatched: tuple[Span, ...]
    band: tuple[BandPart, ...]
    dots: tuple[Dot, ...]
    rows: tuple[LedgerRow, ...]
    left_out: str
