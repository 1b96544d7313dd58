"""The JSON API: what the pages show, for programs; read-only and documented by /api/openapi.json (SU-10)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from msgspec import Struct

from paritrace.attempts.explaining import Explained
from paritrace.compare.checks_result import Checked
from paritrace.compare.result import Comparison
from paritrace.compare.rows import Side
from paritrace.reports.documents import encoded
from paritrace.reports.explanation import Explanation
from paritrace.reports.shelf import Shelf
from paritrace.reports.shelf_others import StorePage
from paritrace.runs.showing import RunSummary
from paritrace.runs.verify import Verification
from paritrace.web import contents
from paritrace.web.call_detail import CallDetail
from paritrace.web.calls_database import Answer
from paritrace.web.calls_question import NAMES, asked
from paritrace.web.contents import AttemptsShown, Facets
from paritrace.web.library import Library
from paritrace.web.schemas import answer_with
from paritrace.web.source_view import SourcePage

Key = Annotated[str, Path(description="The key of a run or comparison, from /api/shelf", max_length=64)]
Rank = Annotated[int, Path(ge=0, le=2**31)]
RecordId = Annotated[int, Path(ge=0, le=2**62)]
Offset = Annotated[int, Query(description="Number of the first row, from 0")]
Limit = Annotated[int, Query(description="Rows at most")]
File = Annotated[str, Query(description="As a call's `file` names it", max_length=4096)]
Figure = Annotated[str, Query(description="A name of `figures`", max_length=4096)]
FILTERS = {
    "parameters": [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"}, "description": "Filter or order"}
        for name in NAMES
    ]
}


def routes(library: Library, /) -> APIRouter:
    """Returns the routes of the API over a library."""
    # longer than 40 lines: one route after the other, each of a line or two
    api = APIRouter(prefix="/api", tags=["read only"])

    @api.get("/health", summary="Says that the server answers")
    def health() -> dict[str, bool]:
        return {"ok": True}

    @api.get("/shelf", responses=answer_with(Shelf), summary="Runs and comparisons at the path")
    def shelf() -> Response:
        return document(library.shelf())

    @api.get("/runs/{key}", responses=answer_with(RunSummary), summary="A run: sessions, coverage, attachments")
    def run(key: Key) -> Response:
        return document(contents.run_summary(library, key))

    @api.get("/runs/{key}/verification", responses=answer_with(Verification), summary="Hash and read a run again")
    def verification(key: Key) -> Response:
        return document(contents.verification(library, key))

    @api.get("/runs/{key}/check", responses=answer_with(Checked), summary="A run against itself, as check --json")
    def checked(key: Key) -> Response:
        return document(contents.checked(library, key))

    @api.get("/comparisons/{key}", responses=answer_with(Comparison), summary="A comparison, as compare --json")
    def comparison(key: Key) -> Response:
        return document(library.result(key).comparison)

    @api.get("/comparisons/{key}/evidence/{identity}", responses=answer_with(Explanation), summary="As explain --json")
    def evidence(key: Key, identity: str) -> Response:
        return document(contents.evidence(library, key, identity))

    @api.get(
        "/comparisons/{key}/calls",
        responses=answer_with(Answer),
        openapi_extra=FILTERS,
        summary="Rows of the table of calls",
    )
    def calls(key: Key, request: Request, offset: Offset = 0, limit: Limit = contents.PAGE_ROWS) -> Response:
        offset, limit = contents.bounded(offset, limit)
        question = asked(dict(request.query_params))
        return document(library.calls(key).answer(question, offset=offset, limit=limit))

    @api.get("/comparisons/{key}/facets", responses=answer_with(Facets), summary="Rows by word of each closed column")
    def facets(key: Key) -> Response:
        return document(Facets(library.calls(key).facets()))

    @api.get(
        "/comparisons/{key}/calls/{side}/{rank}/{record_id}",
        responses=answer_with(CallDetail),
        summary="One call and its partner",
    )
    def call(key: Key, side: Side, rank: Rank, record_id: RecordId, session_id: str = "") -> Response:
        return document(contents.call(library, key, (side.value, rank, record_id, session_id)))

    @api.get("/comparisons/{key}/source", responses=answer_with(SourcePage), summary="Both sides of a source file")
    def source(key: Key, side: Side, file: File, line: Annotated[int, Query(ge=0, le=2**31)] = 0) -> Response:
        return document(contents.sources(library, key, side, file, line=line))

    _add_others(api, library)
    _add_attempts(api, library)
    return api


def _add_attempts(api: APIRouter, library: Library) -> None:
    @api.get("/attempts/{key}", responses=answer_with(AttemptsShown), summary="Attempts, as attempts compare --json")
    def attempts(key: Key) -> Response:
        return document(contents.attempts(library, key))

    @api.get("/attempts/{key}/explained", responses=answer_with(Explained), summary="As attempts explain --json")
    def explained(key: Key, figure: Figure) -> Response:
        return document(contents.explained_figure(library, key, figure))


def _add_others(api: APIRouter, library: Library) -> None:
    """The routes of what is neither a run nor a comparison."""

    @api.get("/checks/{key}", responses=answer_with(Checked), summary="A kept check, as check --json")
    def kept_check(key: Key) -> Response:
        return document(library.check(key))

    @api.get("/stores/{key}", responses=answer_with(StorePage), summary="How far the ranks of a store are")
    def store(key: Key) -> Response:
        return document(library.store(key))


def document(found: Struct, /) -> Response:
    """Returns a record as the answer of a route."""
    return Response(encoded(found), media_type="application/json")
