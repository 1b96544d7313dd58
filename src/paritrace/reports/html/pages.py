"""Records of whole pages: a comparison, a check, a run; all their words and numbers, no markup (SU-10)."""

from msgspec import Struct

from paritrace.reports.html.chart import Chart
from paritrace.reports.html.page import (
    CallRef,
    ChangeRow,
    Command,
    Extra,
    Figure,
    FindingPart,
    Ladder,
    Place,
    Reason,
    ReasonPlace,
    RunPart,
)
from paritrace.runs.record_words import Told


class FirstDifference(Struct, frozen=True):
    """`place` is None where none is named; then `said` says why."""

    said: tuple[str, ...]
    place: Place | None = None


class NotSeen(Struct, frozen=True):
    """What the comparison cannot speak of; `places_left_out`: places of undetermined calls beyond those listed."""

    statements: tuple[str, ...]
    reasons: tuple[Reason, ...]
    places: tuple[ReasonPlace, ...]
    places_left_out: int
    limits: tuple[tuple[str, str], ...]  # code, text


class ComparisonPage(Struct, frozen=True):
    """What the first screen of a comparison says (CP-29), as a page."""

    anchor: str  # of the leading statement
    sentence: str
    strength: str
    runs: tuple[RunPart, RunPart]
    ladder: Ladder
    first: FirstDifference
    leading: Place | None  # the place of the first finding, else of the first difference
    findings: tuple[FindingPart, ...]
    findings_left_out: int
    consequences: str
    changed: tuple[ChangeRow, ...]
    changed_left_out: int
    changed_said: tuple[str, ...]
    outside: tuple[str, ...]
    one_sided: tuple[str, ...]
    extras: tuple[Extra, ...]
    counts: tuple[Figure, ...]
    scope: str
    not_seen: NotSeen
    commands: tuple[Command, ...]
    policy: str
    kept: str  # the folder of the result, "" when nothing was kept
    chart: Chart | None = None  # the error ledger; None where no size was measured


class InvariantRow(Struct, frozen=True):
    """One invariant: `status` is pass | fail | not_checkable | not_applicable, `glyph` its mark."""

    anchor: str
    id: str
    status: str
    glyph: str
    said: str
    where: str  # rank and step, "" where it speaks of all
    file: str
    line: int
    facts: tuple[str, ...]
    names: tuple[str, ...]
    total: int
    reason: str
    calls: tuple[CallRef, ...] = ()


class CheckGroup(Struct, frozen=True):
    """Invariants of one status."""

    anchor: str
    title: str
    rows: tuple[InvariantRow, ...]
    left_out: int


class CheckPage(Struct, frozen=True):
    """What `paritrace check` says of one run (CP-25), as a page."""

    sentence: str
    strength: str
    run: RunPart
    counts: tuple[Figure, ...]
    groups: tuple[CheckGroup, ...]
    ends: tuple[Told, ...]  # ends that were no success, and the page at death (RS-13)
    coverage: tuple[str, ...]
    attendance: tuple[str, ...]
    remarks: tuple[str, ...]
    limits: tuple[str, ...]
    commands: tuple[Command, ...]


class MatrixRow(Struct, frozen=True):
    """One session: `cells` has one state per step of the matrix: seen | absent | unreadable."""

    session_id: str
    rank: int
    incarnation: int
    status: str
    seconds: str
    records: str
    coverage: str
    cells: tuple[str, ...]
    remarks: tuple[str, ...]


class AttachmentRow(Struct, frozen=True):
    id: str
    title: str
    kind: str
    storage: str
    where: str
    size: str
    sha256: str
    availability: str


class RunPage(Struct, frozen=True):
    """One run: sessions by steps, what is missing, its attachments."""

    run: RunPart
    title: str
    facts: tuple[tuple[str, str], ...]
    steps: tuple[int, ...]  # the columns of the matrix
    steps_left_out: int
    rows: tuple[MatrixRow, ...]
    rows_left_out: int
    missing: tuple[str, ...]
    ends: tuple[Told, ...]  # what run records say of how programs ended, and the page at death (RS-13)
    attachments: tuple[AttachmentRow, ...]
    attachments_left_out: int
