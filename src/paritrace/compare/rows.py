"""Records of the rows of a comparison: every call of both sides, as `calls.parquet` and `why-not` read them."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from paritrace.compare.element_figures import ElementFigures
from paritrace.compare.result import (
    Agreement,
    Basis,
    Comparison,
    DifferenceClass,
    Group,
    Status,
    Unpaired,
)
from paritrace.compare.token_rows import TokenRowsCompared
from paritrace.evidence.gaps import CaptureGap, Gap


class Side(StrEnum):
    BASELINE = "baseline"
    CANDIDATE = "candidate"


class Correspondence(StrEnum):
    PAIRED = "paired"
    UNDETERMINED = "undetermined"


class Validation(StrEnum):
    """What a person has said of a call's pair (CP-6, CP-14)."""

    UNREVIEWED = "unreviewed"
    CONFIRMED = "confirmed"
    REPLACED = "replaced"  # paired by the review
    REJECTED = "rejected"
    DISPLACED = "displaced"  # its partner was given to another call
    UNDETERMINED = "undetermined"  # kept so by the review


class SlotRow(Struct, frozen=True, gc=False):
    """One recorded tensor of a call. `xor` and `regions` are empty where no full summary was recorded (CP-24).

    `strides` in elements, empty where the elements lie in logical order; `semantics`: what it is declared to mean.
    """

    direction: str  # "i" input, "o" output
    name: str
    dtype: str
    shape: tuple[int, ...]
    logical_nbytes: int
    bits: str | Gap[CaptureGap]
    xor: str = ""
    regions: str = ""
    elements: str = ""
    agreement: Agreement | None = None  # None: the call is not paired
    figures: ElementFigures | None = None  # of a slot that differs and that both runs keep whole (CP-11)
    strides: tuple[int, ...] = ()
    semantics: str = ""


class CallRow(Struct, frozen=True, gc=False):
    """One call of one side. `key` is the same text on both sides where calls may correspond (CP-1): function, site
    after lines were related, and module; `stream` and `scope` are where the key was looked for, spelled alike too.
    """

    side: Side
    rank: int
    session_id: str
    record_id: int
    step: int
    microbatch: int
    phase: str
    level: str
    function: str
    file: str
    line: int
    module: str
    stream: str
    scope: str
    key: str
    status: Status
    correspondence: Correspondence
    basis: Basis | None = None
    reason: Unpaired | None = None
    partner: int = -1  # record id on the other side
    reordered: bool = False
    difference_class: DifferenceClass | None = None
    group: Group | None = None
    slots: tuple[SlotRow, ...] = ()
    scalars: str = ""  # the arguments that are no tensors, as `name=value`
    thread: str = ""
    start_ns: int = -1  # since the session started, monotonic; -1: not known
    duration_ns: int = -1

    @property
    def validation(self) -> Validation | None:
        """Every automatic pair is a candidate that nobody has reviewed (CP-6); None of a call that is not paired."""
        return Validation.UNREVIEWED if self.correspondence is Correspondence.PAIRED else None


class Compared(Struct, frozen=True):
    """What the engine returns. `rows` may be read several times and is made row by row, in execution order per side."""

    result: Comparison
    rows: Iterable[CallRow]
    token_rows: TokenRowsCompared | None = None
