"""Records of the parts that pages are made of: text as it was recorded; the templates make it harmless (SU-10, SU-12).

Every part that states something carries an `anchor`, the id that `paritrace explain` takes (P9).
"""

from msgspec import Struct

from paritrace.compare.result import Mark

MARK_NAMES = {
    Mark.AGREES: "agrees",
    Mark.INSIDE: "inside",
    Mark.BEYOND: "beyond",
    Mark.UNDETERMINED: "undetermined",
    Mark.NOT_REACHED: "not-reached",
}
"""Mark -> the name of its colour."""


class MarkCell(Struct, frozen=True):
    """A mark as glyph, name of its colour and meaning in words."""

    glyph: str
    name: str
    meaning: str


class Rung(Struct, frozen=True):
    name: str
    mark: MarkCell
    anchor: str


class StripRow(Struct, frozen=True):
    """`label` is a rank with its mesh coordinate, or a step; `current`: the step of the ladder above."""

    label: str
    marks: tuple[MarkCell, ...]
    current: bool = False


class Strip(Struct, frozen=True):
    """The ladder again, one row for each rank or step."""

    caption: str
    row_heading: str
    rungs: tuple[str, ...]
    rows: tuple[StripRow, ...]
    left_out: str = ""  # how many rows are not shown, in words


class Ladder(Struct, frozen=True):
    step: int
    around: tuple[Rung, ...]  # what stood before the step's own work
    within: tuple[Rung, ...]
    legend: tuple[MarkCell, ...]
    strips: tuple[Strip, ...] = ()


class CallRef(Struct, frozen=True):
    """A recorded call of one side."""

    side: str
    rank: int
    record_id: int

    @property
    def identity(self) -> str:
        return f"{self.side}:{self.record_id}"


class SourceLine(Struct, frozen=True):
    number: int
    text: str
    marked: bool = False


class SourceSide(Struct, frozen=True):
    """What one side's source says at a place; `why` where there are no lines."""

    side: str
    site: str  # FILE:LINE, FILE:A-B or ""
    file: str
    line: int
    lines: tuple[SourceLine, ...]
    why: str = ""


class SlotRow(Struct, frozen=True):
    """How one slot differs, and by how much."""

    slot: str
    how: str
    size: str
    baseline: str
    candidate: str
    bytes: str  # where regions differ


class Place(Struct, frozen=True):
    """Where a finding stands."""

    where: str  # FILE:LINE
    step: int
    phase: str
    ranks: str
    module: str
    function: str
    origin: str  # the group, in words
    calls: tuple[CallRef, ...]
    slots: tuple[SlotRow, ...]
    sources: tuple[SourceSide, ...]  # baseline, candidate; empty where neither has a line
    stretch: str = ""
    next_to_see: tuple[str, ...] = ()


class FindingPart(Struct, frozen=True):
    anchor: str
    sentence: str
    strength: str
    place: Place
    measured: str  # the figures, "" where none was measured
    expected: str
    ratio: str
    consequences: str


class ChangeRow(Struct, frozen=True):
    kind: str
    name: str
    baseline: str
    candidate: str


class Figure(Struct, frozen=True):
    """A number with its name; the anchor leads to the calls that it counts."""

    anchor: str
    label: str
    value: int


class Reason(Struct, frozen=True):
    """Calls of one side without a partner, for one reason."""

    anchor: str
    side: str
    code: str
    words: str
    calls: int
    share: float  # of the side's calls, 0 to 1


class ReasonPlace(Struct, frozen=True):
    side: str
    step: int
    phase: str
    module: str
    file: str
    code: str
    calls: int


class Command(Struct, frozen=True):
    command: str
    purpose: str
    cost: str


class Extra(Struct, frozen=True):
    """A section that only some comparisons have, in the lines of the terminal's screen."""

    anchor: str
    title: str
    lines: tuple[str, ...]


class RunPart(Struct, frozen=True):
    side: str
    run_id: str
    path: str
    digest: str
