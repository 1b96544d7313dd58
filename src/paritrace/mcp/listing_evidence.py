"""`list_evidence`: what lies in the folders served, counted, a page at a time (AU-12)."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.mcp.cursors import about, cursor_of, offset_of
from paritrace.mcp.places import Places
from paritrace.mcp.questions import PAGE_ROWS, AskList, Kind
from paritrace.mcp.rows_that_fit import within
from paritrace.mcp.telling import Listing, listing
from paritrace.reports.shelf import Shelf, ShelvedComparison, ShelvedRun, key_of


class Evidence(Struct, frozen=True, omit_defaults=True):
    """One thing that was found. `about`: a run's title and status, a comparison's first finding, what is wrong."""

    kind: Kind
    key: str
    path: str
    about: str
    run_id: str = ""
    created_at: str = ""
    baseline_run_id: str = ""
    candidate_run_id: str = ""
    findings: int | None = None
    calls: int | None = None
    code: str = ""


class Found(Struct, frozen=True):
    """`counts` of everything that was found, by kind; `rows` of what was asked for."""

    counts: dict[str, int]
    folders: Listing[str]
    rows: Listing[Evidence]
    next_cursor: str  # empty: there is no more
    left_out: Listing[str]  # what was not looked at


def list_evidence(places: Places, asked: AskList, /) -> Found:
    """Lists runs, comparisons, kept checks, stores and what cannot be read."""
    shelves = places.shelves()
    found = [one for shelf in shelves for one in _evidence(shelf)]
    rows = [one for one in found if asked.kind is None or one.kind is asked.kind]
    seen = "\0".join(one.path for one in rows)
    what = about(answered=seen, question=replace(asked, cursor="", limit=PAGE_ROWS))
    begin = offset_of(asked.cursor, what)
    shown = within(rows[begin : begin + asked.limit])
    end = begin + len(shown)
    return Found(
        counts={kind.value: sum(one.kind is kind for one in found) for kind in Kind},
        folders=listing([str(folder) for folder in places.folders]),
        rows=listing(shown, total=len(rows)),
        next_cursor=cursor_of(what, offset=end) if shown and end < len(rows) else "",
        left_out=listing([text for shelf in shelves for text in shelf.left_out]),
    )


def _evidence(shelf: Shelf) -> Iterator[Evidence]:
    yield from map(_run, shelf.runs)
    yield from map(_comparison, shelf.comparisons)
    for check in shelf.checks:
        words = f"{check.fails} of {check.invariants} invariants fail, {check.not_checkable} not checkable"
        yield Evidence(Kind.CHECK, check.key, check.path, words, run_id=check.run_id)
    for store in shelf.stores:
        yield Evidence(Kind.STORE, store.key, store.path, "a store: `paritrace store status` reads it")
    for trouble in shelf.troubles:
        yield Evidence(Kind.UNREADABLE, key_of(Path(trouble.path)), trouble.path, trouble.message, code=trouble.code)


def _run(run: ShelvedRun) -> Evidence:
    line = run.line
    statuses = ", ".join(f"{count} {status}" for status, count in line.statuses.items())
    title = f"{line.title}: " if line.title else ""
    words = f"{title}{line.num_sessions} sessions ({statuses})"
    return Evidence(Kind.RUN, run.key, line.path, words, run_id=line.run_id, created_at=line.created_at)


def _comparison(one: ShelvedComparison) -> Evidence:
    return Evidence(
        Kind.COMPARISON,
        one.key,
        one.path,
        one.sentence,
        baseline_run_id=one.baseline,
        candidate_run_id=one.candidate,
        findings=one.findings,
        calls=one.calls,
    )
