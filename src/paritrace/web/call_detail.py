"""One call with all that is recorded of it: both sides' slots, regions, neighbours, findings, its journal line (P9)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from paritrace.compare.result import Finding
from paritrace.compare.rows import Side
from paritrace.errors import ParitraceError, RequestError
from paritrace.files import LOCAL
from paritrace.reports import why_not as answers
from paritrace.reports.explanation import RecordLine
from paritrace.reports.journal_lines import lines_of_calls
from paritrace.reports.kept_result import KeptResult
from paritrace.reports.shelf import Result
from paritrace.web.asked_table import AskedTable
from paritrace.web.calls_database import CallsDatabase, Row

NEIGHBOURS = 6  # before and after: what a screen holds beside the call itself
FIGURES = (
    "elements_compared",
    "elements_masked",
    "mismatches",
    "non_finite_apart",
    "max_absolute",
    "max_relative",
    "max_ulp",
    "cosine",
)


class Region(Struct, frozen=True):
    """One part of a slot's bytes, half-open; a fingerprint is "" where that side has none."""

    begin: int | None
    end: int | None
    baseline: str
    candidate: str
    equal: bool | None  # None: one side has none, so nothing can be said


class SlotSide(Struct, frozen=True):
    """A slot as one side recorded it; `bits` is its fingerprint, `bits_gap` why there is none."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    num_bytes: int
    bits: str
    bits_gap: str
    scheme: str
    semantics: str


class SlotPair(Struct, frozen=True):
    """The slot at one place of a call; a side is None where it has no such slot. `figures`: element by element."""

    direction: str  # input | output
    agreement: str  # "" where nothing was compared
    baseline: SlotSide | None
    candidate: SlotSide | None
    regions: tuple[Region, ...]
    regions_scheme: str
    figures: dict[str, float | int]


class CallSide(Struct, frozen=True):
    """One side's call, what stood around it, and where it is recorded; `record_gap` says why no line is named."""

    side: str
    row: Row
    scalars: str
    around: tuple[Row, ...]
    record: RecordLine | None
    record_gap: str


class CallDetail(Struct, frozen=True):
    """A call, its partner where it has one, and what the comparison says of the pair."""

    row: Row
    stream: str
    scope: str
    key: str
    basis: str
    sides: tuple[CallSide, ...]
    slots: tuple[SlotPair, ...]
    findings: tuple[Finding, ...]
    why: answers.WhyNot | None  # None of a paired call


def detail_of(result: Result, table: CallsDatabase, /, row: Row) -> CallDetail:
    """Returns everything recorded of a call and of its partner.

    Raises:
        EvidenceError: Refused, `damaged_result`.
    """
    partner = _partner(table, row)
    rows = {one.side: one for one in (row, partner) if one is not None}
    whole = {side: table.whole(one.n) for side, one in rows.items()}
    own = whole[row.side]
    return CallDetail(
        row=row,
        stream=str(own["stream"]),
        scope=str(own["scope"]),
        key=str(own["key"]),
        basis=str(own["basis"] or ""),
        sides=tuple(_side(result, table, rows[side], whole[side]) for side in Side if side in rows),
        slots=tuple(_slots(whole.get(Side.BASELINE, {}), whole.get(Side.CANDIDATE, {}))),
        findings=tuple(one for one in result.comparison.findings if _is_about(one, rows)),
        why=None if partner is not None or row.partner is not None else _why_not(table, row),
    )


def find_row(table: CallsDatabase, side: str, rank: int, record_id: int, session_id: str = "") -> Row:
    """Returns the row of a call.

    Raises:
        RequestError: Refused: `no_such_id`; `ambiguous_id` where several sessions have a call of this id.
    """
    found = table.find(side, rank, record_id, session_id)
    if not found:
        raise RequestError(
            f"no call {side}:{record_id} of rank {rank}", code="no_such_id", fix="look for it in the table of calls"
        )
    if len(found) > 1:
        names = ", ".join(sorted(one.session_id for one in found))
        raise RequestError(
            f"{side}:{record_id} names {len(found)} calls, of the sessions {names}",
            code="ambiguous_id",
            fix="add ?session_id=… to the address",
        )
    return found[0]


def _partner(table: CallsDatabase, row: Row) -> Row | None:
    if row.partner is None:
        return None
    other = Side.CANDIDATE if row.side == Side.BASELINE else Side.BASELINE
    found = table.find(other, row.rank, row.partner)
    back = [one for one in found if one.partner == row.record_id and one.step == row.step] or found
    return back[0] if back else None


def _side(result: Result, table: CallsDatabase, row: Row, whole: Mapping[str, Any]) -> CallSide:
    record, gap = _record(result, row)
    return CallSide(
        side=row.side,
        row=row,
        scalars=str(whole["scalars"] or ""),
        around=table.around(row, reach=NEIGHBOURS),
        record=record,
        record_gap=gap,
    )


def _record(result: Result, row: Row) -> tuple[RecordLine | None, str]:
    """The line of the journal that holds a call, or why it is not known."""
    if result.kept is None:
        return None, "the comparison is a document alone: it names no journals"
    journal = _journal(result.kept, row)
    try:
        lines = lines_of_calls(LOCAL.iter_chunks(journal), [row.record_id]) if journal else {}
    except ParitraceError:
        lines = {}
    if row.record_id not in lines:
        return None, "the journal is not where it was when the runs were compared"
    return RecordLine(f"{row.side}:{row.record_id}", str(journal), lines[row.record_id], row.function), ""


def _journal(kept: KeptResult, row: Row) -> Path | None:
    run = kept.comparison.baseline if row.side == Side.BASELINE else kept.comparison.candidate
    found = [one.path for one in kept.manifest.sources if (one.side, one.session_id) == (row.side, row.session_id)]
    return Path(run.path) / found[0] if found else None


def _why_not(table: CallsDatabase, row: Row) -> answers.WhyNot:
    asked = AskedTable(table)
    return answers.why_not(asked, answers.find_call(asked, f"{row.side}:{row.session_id}:{row.record_id}"))


def _is_about(finding: Finding, rows: Mapping[str, Row]) -> bool:
    ids = {Side.BASELINE: finding.place.baseline_record_id, Side.CANDIDATE: finding.place.candidate_record_id}
    return any(row.record_id == ids[Side(side)] and row.rank == finding.place.rank for side, row in rows.items())


def _slots(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[SlotPair]:
    for direction, word in (("i", "input"), ("o", "output")):
        ours = [slot for slot in baseline.get("slots") or () if slot["direction"] == direction]
        theirs = [slot for slot in candidate.get("slots") or () if slot["direction"] == direction]
        for place in range(max(len(ours), len(theirs))):
            yield _pair(word, _at(ours, place), _at(theirs, place))


def _at(slots: list[dict[str, Any]], place: int) -> dict[str, Any] | None:
    return slots[place] if place < len(slots) else None


def _pair(direction: str, ours: dict[str, Any] | None, theirs: dict[str, Any] | None) -> SlotPair:
    told = ours or theirs or {}
    return SlotPair(
        direction=direction,
        agreement=str(told.get("agreement") or ""),
        baseline=None if ours is None else _slot(ours),
        candidate=None if theirs is None else _slot(theirs),
        regions=_regions(ours or {}, theirs or {}),
        regions_scheme=str(told.get("xor_scheme") or told.get("bits_scheme") or ""),
        figures={name: told[name] for name in FIGURES if told.get(name) is not None},
    )


def _slot(slot: dict[str, Any]) -> SlotSide:
    return SlotSide(
        name=str(slot["name"]),
        dtype=str(slot["dtype"]),
        shape=tuple(slot["shape"] or ()),
        num_bytes=int(slot["logical_nbytes"]),
        bits=str(slot["bits"] or ""),
        bits_gap=str(slot["bits_gap"] or ""),
        scheme=str(slot["bits_scheme"] or ""),
        semantics=str(slot["semantics"] or ""),
    )


def _regions(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[Region, ...]:
    """The fingerprints of the parts of a slot, side by side; of a finer scheme where both sides have it."""
    name = "region_bits" if ours.get("region_bits") and theirs.get("region_bits") else "xor"
    left: list[Any] = ours.get(name) or []
    right: list[Any] = theirs.get(name) or []
    ranges: list[dict[str, int]] = ours.get("byte_ranges") or theirs.get("byte_ranges") or []
    return tuple(
        _region(ranges[place] if place < len(ranges) else {}, _word(left, place), _word(right, place))
        for place in range(max(len(left), len(right)))
    )


def _region(span: dict[str, int], left: str, right: str) -> Region:
    return Region(span.get("begin"), span.get("end"), left, right, left == right if left and right else None)


def _word(words: list[str], place: int) -> str:
    return str(words[place]) if place < len(words) else ""
