"""Lists what is behind a line or figure of a comparison: files, line numbers and record ids (P9)."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from paritrace.compare.rows import Side
from paritrace.files import Files
from paritrace.reports.behind import Behind, unknown_id
from paritrace.reports.calls_table import CallsTable, TableCall
from paritrace.reports.explained import behind
from paritrace.reports.journal_lines import lines_of_calls
from paritrace.reports.kept_result import KeptResult
from paritrace.reports.wording import short_function

RECORDS_SHOWN = 20


class RecordLine(Struct, frozen=True):
    """One record behind a figure. `journal_line` is 0 where the journal is not at hand (archive, removed run)."""

    id: str
    journal: str
    journal_line: int
    what: str


class FileBehind(Struct, frozen=True):
    path: str
    size: int
    sha256: str
    role: str


class Explanation(Struct, frozen=True):
    """`total` records are behind the figure; `records` are the first of them."""

    id: str
    statement: str
    facts: tuple[str, ...]
    how_counted: str  # how to find all of them in calls.parquet; "" where the figure is no count of calls
    records: tuple[RecordLine, ...]
    total: int
    files: tuple[FileBehind, ...]


def explain(result: KeptResult, identity: str, /, *, files: Files, table: CallsTable | None = None) -> Explanation:
    """Returns the evidence behind `identity`: an anchor of the screen, a figure of the document, or a call.

    Args:
        table: calls.parquet where it is open already; else it is opened where it was kept.

    Raises:
        RequestError: Refused, `no_such_id`: names what can be explained.
        EvidenceError: Refused, `damaged_result`.
    """
    what = behind(result.comparison, identity)
    if table is None and files.exists(result.calls_path()):
        table = CallsTable(result.calls_path())
    calls, total = _calls(table, what)
    if table is not None and what.is_call and not total:
        raise unknown_id(identity, ("the ids in calls.parquet",))
    return Explanation(
        id=identity,
        statement=what.statement,
        facts=what.facts,
        how_counted=_how_counted(result, what, has_table=table is not None),
        records=tuple(_record_lines(result, calls, files=files)),
        total=total,
        files=tuple(_files(result)),
    )


def _calls(table: CallsTable | None, what: Behind) -> tuple[list[TableCall], int]:
    if table is None:
        return [], 0
    if what.rows is not None:
        return table.matching(what.rows, most=RECORDS_SHOWN), table.count(what.rows)
    found: list[TableCall] = []
    for side, rank, record_id in what.record_ids[:RECORDS_SHOWN]:
        found += table.matching({"side": side, "rank": rank, "record_id": record_id})
    return found, len(what.record_ids)


def _how_counted(result: KeptResult, what: Behind, *, has_table: bool) -> str:
    if what.rows is None:
        return ""
    condition = " and ".join(f"{name} = {value!s}" for name, value in what.rows.items())
    where = str(result.calls_path()) if has_table else "calls.parquet, which was not kept"
    return f"rows of {where} with {condition}"


def _record_lines(result: KeptResult, calls: list[TableCall], *, files: Files) -> Iterable[RecordLine]:
    places = {(source.side, source.session_id): source.path for source in result.manifest.sources}
    lines: dict[tuple[str, str], dict[int, int]] = {}
    for place in {(str(call.side), call.session_id) for call in calls}:
        wanted = [call.record_id for call in calls if (call.side, call.session_id) == place]
        lines[place] = _lines_in(_journal(result, place[0], places.get(place, "")), wanted, files=files)
    for call in calls:
        place = (str(call.side), call.session_id)
        journal = _journal(result, place[0], places.get(place, ""))
        yield RecordLine(call.identity, str(journal or ""), lines[place].get(call.record_id, 0), _what(call))


def _journal(result: KeptResult, side: str, path: str) -> Path | None:
    run = result.comparison.baseline if side == Side.BASELINE else result.comparison.candidate
    return Path(run.path) / path if path else None


def _lines_in(journal: Path | None, wanted: list[int], *, files: Files) -> dict[int, int]:
    if journal is None or not files.exists(journal):
        return {}
    return lines_of_calls(files.iter_chunks(journal), wanted)


def _what(call: TableCall) -> str:
    return f"{short_function(call.function)} at {call.file}:{call.line}, step {call.step}, {call.phase}, {_state(call)}"


def _state(call: TableCall) -> str:
    other = Side.CANDIDATE if call.side is Side.BASELINE else Side.BASELINE
    return f"{call.status}, paired with {other}:{call.partner}" if call.is_paired else f"{call.status} ({call.reason})"


def _files(result: KeptResult) -> Iterable[FileBehind]:
    for source in result.manifest.sources:
        path = _journal(result, source.side, source.path)
        yield FileBehind(str(path or source.path), source.size, source.sha256, f"journal, {source.side}")
    for exported in result.manifest.files:
        yield FileBehind(str(result.directory / exported.path), exported.size, exported.sha256, "export")


def as_text(explanation: Explanation, /) -> list[str]:
    """Returns the explanation for a person."""
    lines = [f"[{explanation.id}]  {explanation.statement}"]
    lines += [f"    {fact}" for fact in explanation.facts]
    if explanation.records:
        lines.append(f"records     {len(explanation.records):,} of {explanation.total:,}")
        lines += [f"    {_record_text(record)}" for record in explanation.records]
    if explanation.how_counted:
        lines.append(f"all of them {explanation.how_counted}")
    lines.append("files")
    lines += [
        f"    {file.path}  ({file.role}, {file.size:,} bytes, sha256 {file.sha256})" for file in explanation.files
    ]
    return lines


def _record_text(record: RecordLine) -> str:
    place = f"{record.journal}:{record.journal_line}" if record.journal_line else "journal line not at hand"
    return f"{record.id}  {place}  {record.what}"
