"""What the tools may be asked: the arguments of each, as records (AU-12)."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from paritrace.compare.result import DifferenceClass, Group

PAGE_ROWS = 50  # rows of one page at most (AU-12)

Text = Annotated[str, Meta(max_length=4096)]
RunName = Annotated[
    str, Meta(min_length=1, max_length=4096, description="Key from list_evidence, or a path in the folders served")
]
ComparisonName = RunName
Cursor = Annotated[str, Meta(max_length=64, description="`next_cursor` of the answer before; empty: from the start")]
Limit = Annotated[int, Meta(ge=1, le=PAGE_ROWS, description="Rows at most; an answer may hold fewer")]


class Kind(StrEnum):
    RUN = "run"
    COMPARISON = "comparison"
    CHECK = "check"
    STORE = "store"
    UNREADABLE = "unreadable"


class Rows(StrEnum):
    """Which calls of a comparison: pairs that differ or cannot be compared, or calls without a partner."""

    DIFFERENT = "different"
    INCOMPARABLE = "incomparable"
    UNALIGNED = "unaligned"


class AskList(Struct, frozen=True, forbid_unknown_fields=True):
    kind: Annotated[Kind | None, Meta(description="List only these")] = None
    cursor: Cursor = ""
    limit: Limit = PAGE_ROWS


class AskRun(Struct, frozen=True, forbid_unknown_fields=True):
    run: RunName


class AskComparison(Struct, frozen=True, forbid_unknown_fields=True):
    comparison: ComparisonName


class AskDifferences(Struct, frozen=True, forbid_unknown_fields=True):
    comparison: ComparisonName
    rows: Rows = Rows.DIFFERENT
    rank: Annotated[int, Meta(ge=0, le=2**31 - 1, description="Of this rank")] | None = None
    step: Annotated[int, Meta(ge=-1, le=2**62, description="Of this step")] | None = None
    group: Annotated[Group | None, Meta(description="Where the difference comes from")] = None
    difference_class: Annotated[DifferenceClass | None, Meta(description="What kind of difference it is")] = None
    cursor: Cursor = ""
    limit: Limit = PAGE_ROWS


class AskExplain(Struct, frozen=True, forbid_unknown_fields=True):
    comparison: ComparisonName
    id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="As F1, ladder.forward, counts.paired, candidate:213 or candidate:rank-0:213",
        ),
    ]
