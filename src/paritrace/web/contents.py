"""What each page and each answer of the JSON API holds: one function for both (SU-10)."""

from pathlib import Path

from msgspec import Struct

from paritrace.attempts.api import compare, figures, require_scipy
from paritrace.attempts.api import explain as attempts_explain
from paritrace.attempts.explaining import Explained
from paritrace.attempts.result import AttemptsComparison
from paritrace.compare.checks import check
from paritrace.compare.checks_result import Checked
from paritrace.compare.result import Finding
from paritrace.compare.rows import Side
from paritrace.errors import RequestError
from paritrace.files import LOCAL
from paritrace.inference.artifact import ARTIFACT_NAME
from paritrace.reports.explained import behind
from paritrace.reports.explanation import Explanation, explain
from paritrace.reports.shelf import Result
from paritrace.runs.showing import RunSummary, summarise
from paritrace.runs.verify import Verification
from paritrace.runs.verify import verify as verify_run
from paritrace.web.addresses import ServerLinks
from paritrace.web.asked_table import AskedTable
from paritrace.web.call_detail import CallDetail, detail_of, find_row
from paritrace.web.library import Library
from paritrace.web.source_view import SourcePage, source_page, source_text

PAGE_ROWS = 60  # rows that a page holds from the start
MOST_ROWS = 500  # of one answer: a screen shows a tenth of it


class Facets(Struct, frozen=True):
    """Column -> word -> rows that have it."""

    counts: dict[str, dict[str, int]]


def run_summary(library: Library, key: str, /) -> RunSummary:
    with library.run(key) as run:
        return summarise(run)


def has_inference(library: Library, key: str, /) -> bool:
    """Whether a run holds inference evidence."""
    with library.run(key) as run:
        return LOCAL.exists(run.folder / ARTIFACT_NAME)


def verification(library: Library, key: str, /) -> Verification:
    """Hashes and reads everything of a run again; as long as that takes."""
    with library.run(key) as run:
        return verify_run(run)


def checked(library: Library, key: str, /) -> Checked:
    """Holds a run against itself, as `paritrace check` does; as long as that takes."""
    with library.run(key) as run:
        return check(run)


class AttemptsShown(Struct, frozen=True):
    """A manifest of attempts as `paritrace attempts compare` tells it, and the figures that can be followed."""

    path: str
    comparison: AttemptsComparison
    figures: tuple[str, ...]


def attempts(library: Library, key: str, /) -> AttemptsShown:
    """Weighs the attempts of a manifest; as long as that takes.

    Raises:
        RequestError: Refused, `bad_attempts_manifest`, `path_outside`.
        HostError: Refused: it cannot be read, or `missing_extra`.
    """
    require_scipy()
    loaded = library.manifest(key)
    return AttemptsShown(loaded.path, compare(loaded), figures(loaded))


def explained_figure(library: Library, key: str, figure: str, /) -> Explained:
    """Returns the attempts, files and lines behind a figure; raises as `attempts`, and `no_such_figure`."""
    require_scipy()
    return attempts_explain(library.manifest(key), figure)


def links_of(library: Library, key: str, result: Result, /) -> ServerLinks:
    comparison = result.comparison
    runs = {
        side: library.key_of_run(stated.run_id, path=Path(stated.path))
        for side, stated in (("baseline", comparison.baseline), ("candidate", comparison.candidate))
    }
    return ServerLinks(key, comparison, has_calls=not library.has_calls(result), runs=runs)


def evidence(library: Library, key: str, identity: str, /) -> Explanation:
    """What an anchor or a figure rests on, as `paritrace explain` says it; of a bare document without its records.

    Raises:
        RequestError: Refused, `no_such_id`.
    """
    result = library.result(key)
    if result.kept is not None:
        table = None if library.has_calls(result) else AskedTable(library.calls(key))
        return explain(result.kept, identity, files=LOCAL, table=table)
    what = behind(result.comparison, identity)
    return Explanation(identity, what.statement, what.facts, "", (), len(what.record_ids), ())


def finding(library: Library, key: str, identity: str, /) -> Finding | None:
    """The finding of this id; None where the id is another anchor."""
    return next((one for one in library.result(key).comparison.findings if one.id == identity), None)


def call(library: Library, key: str, where: tuple[str, int, int, str], /) -> CallDetail:
    """A call by side, rank, record id and session ("" where the id is enough)."""
    side, rank, record_id, session_id = where
    table = library.calls(key)
    return detail_of(library.result(key), table, find_row(table, side, rank, record_id, session_id))


def sources(library: Library, key: str, /, side: Side, file: str, *, line: int) -> SourcePage:
    """Both sides of a file, with the calls of each line where the table is at hand."""
    result = library.result(key)
    texts = (source_text(result, Side.BASELINE, file), source_text(result, Side.CANDIDATE, file))
    calls: tuple[dict[int, dict[str, int]], dict[int, dict[str, int]]] = ({}, {})
    if not library.has_calls(result):
        table = library.calls(key)
        calls = (table.sites(Side.BASELINE, texts[0].file), table.sites(Side.CANDIDATE, texts[1].file))
    return source_page(texts, calls, line=line, side=side)


def filters_of(identity: str, library: Library, key: str, /) -> dict[str, object]:
    """The filters of the table that show all rows which a figure counts; empty where it is no count of rows."""
    rows = behind(library.result(key).comparison, identity).rows or {}
    return dict(rows)


def bounded(offset: int, limit: int, /) -> tuple[int, int]:
    """Returns a stretch of the table that may be asked for.

    Raises:
        RequestError: Refused, `bad_filter`.
    """
    if offset < 0 or offset > 2**53 or not 0 < limit <= MOST_ROWS:
        raise RequestError(
            f"offset {offset} and limit {limit} are out of bounds",
            code="bad_filter",
            fix=f"offset from 0 on, limit from 1 to {MOST_ROWS}",
        )
    return offset, limit
