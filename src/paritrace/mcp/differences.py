"""`list_differences`: the calls of a comparison that differ or have no partner, in order, a page at a time (AU-12)."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from paritrace.compare.result import Status
from paritrace.compare.rows import Side
from paritrace.correspondence.vocabulary import Agreement
from paritrace.mcp.cursors import about, cursor_of, offset_of
from paritrace.mcp.places import Places
from paritrace.mcp.questions import PAGE_ROWS, AskDifferences, Rows
from paritrace.mcp.rows_that_fit import within
from paritrace.mcp.tables import checked_table
from paritrace.mcp.telling import Listing, listing
from paritrace.reports.calls_table import CallsTable
from paritrace.reports.shelf import key_of

SHOWN = (
    "side",
    "rank",
    "session_id",
    "record_id",
    "partner",
    "step",
    "phase",
    "function",
    "module",
    "file",
    "line",
    "status",
    "reason",
    "difference_class",
    "group",
    "slots",
)
SLOTS = 3  # of one row that are named; how many there are is always said


class Row(Struct, frozen=True, omit_defaults=True):
    """A pair that differs, or a call without a partner. `id` and `partner` are as explain takes them; a partner is of
    the same rank, and explain lists the calls of that id on all ranks.

    `place`: FILE:LINE. `slots`: those that differ, with dtype and shape, and how far apart where both were kept whole.
    """

    id: str
    rank: int
    step: int
    phase: str
    function: str
    place: str
    status: str
    module: str = ""
    partner: str = ""
    difference_class: str = ""
    group: str = ""
    reason: str = ""
    slots: Listing[str] | None = None


class Page(Struct, frozen=True):
    """`rows.total` of the whole question; go on with `next_cursor` until it is empty."""

    comparison: str
    rows: Listing[Row]
    next_cursor: str


def list_differences(places: Places, asked: AskDifferences, /) -> Page:
    """A page of calls, in the order of the file: rank by rank as they ran.

    Raises:
        RequestError: Refused: `bad_cursor`, `no_calls_table`.
        EvidenceError: Refused, `damaged_result`.
    """
    found = places.result(asked.comparison)
    path = checked_table(found, files=places.files)
    stated = "" if found.kept is None else "".join(file.sha256 for file in found.kept.manifest.files)
    question = replace(asked, comparison=key_of(found.path), cursor="", limit=PAGE_ROWS)
    what = about(answered=stated, question=question)
    begin = offset_of(asked.cursor, what)
    table, equal = CallsTable(path), _equal(asked)
    rows = table.page(equal, columns=SHOWN, begin=begin, most=asked.limit + 1)
    shown = within([_row(columns) for _, columns in rows[: asked.limit]])
    more = len(rows) > len(shown)
    return Page(
        comparison=key_of(found.path),
        rows=listing(shown, total=table.count(equal)),
        next_cursor=cursor_of(what, offset=rows[len(shown)][0]) if more else "",
    )


def _equal(asked: AskDifferences) -> dict[str, object]:
    """A pair stands in the file twice; the baseline's row is taken. A call without a partner stands there once."""
    values: dict[str, object | None] = {
        "status": Status(asked.rows.value).value,
        "side": None if asked.rows is Rows.UNALIGNED else Side.BASELINE.value,
        "rank": asked.rank,
        "step": asked.step,
        "group": None if asked.group is None else asked.group.value,
        "difference_class": None if asked.difference_class is None else asked.difference_class.value,
    }
    return {name: value for name, value in values.items() if value is not None}


def _row(columns: dict[str, Any]) -> Row:
    side = Side(columns["side"])
    other = Side.CANDIDATE if side is Side.BASELINE else Side.BASELINE
    slots = [slot for slot in columns["slots"] or () if slot["agreement"] == Agreement.DIFFERENT.value]
    return Row(
        id=f"{side}:{columns['session_id']}:{columns['record_id']}",
        rank=columns["rank"],
        step=columns["step"],
        phase=columns["phase"],
        function=columns["function"],
        module=columns["module"],
        place=f"{columns['file']}:{columns['line']}",
        status=columns["status"],
        partner="" if columns["partner"] is None else f"{other}:{columns['partner']}",
        difference_class=columns["difference_class"] or "",
        group=columns["group"] or "",
        reason=columns["reason"] or "",
        slots=listing([_slot(slot) for slot in slots[:SLOTS]], total=len(slots)) if slots else None,
    )


def _slot(slot: dict[str, Any]) -> str:
    shape = "x".join(map(str, slot["shape"] or ()))
    figures = [
        f"{name} {slot[name]:.3g}" for name in ("max_absolute", "max_relative", "max_ulp") if slot[name] is not None
    ]
    return ", ".join([f"{slot['name']} {slot['dtype']}[{shape}]", *figures])
