"""Pages of one comparison: first screen, evidence, calls, one call, what was not seen, sources (SU-10)."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse

from paritrace.compare.rows import Side
from paritrace.web import contents
from paritrace.web.addresses import ServerLinks
from paritrace.web.calls_question import CLOSED, asked
from paritrace.web.comparison_view import comparison_view
from paritrace.web.library import Library
from paritrace.web.navigation import Key, of_comparison
from paritrace.web.rendering import page

TABLE_SCRIPT = "/static/calls_table.js"
Rank = Annotated[int, Path(ge=0, le=2**31)]
RecordId = Annotated[int, Path(ge=0, le=2**62)]
File = Annotated[str, Query(max_length=4096)]
Line = Annotated[int, Query(ge=0, le=2**31)]


class ComparisonPages:
    """Each method answers one address below /c/KEY/."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def routes(self) -> APIRouter:
        made = APIRouter(prefix="/c/{key}", default_response_class=HTMLResponse, include_in_schema=False)
        made.add_api_route("/", self.comparison)
        made.add_api_route("/f/{identity}", self.evidence)
        made.add_api_route("/calls", self.calls)
        made.add_api_route("/call/{side}/{rank}/{record_id}", self.call)
        made.add_api_route("/undetermined", self.undetermined)
        made.add_api_route("/source", self.source)
        return made

    def comparison(self, key: Key) -> str:
        view = comparison_view(self._library, key)
        shown = {"page": view.page, "links": view.links, "no_calls": view.no_calls}
        return page(
            "comparison_view.html", shown, title=view.page.sentence, nav=of_comparison(key, current="Comparison")
        )

    def evidence(self, key: Key, identity: str) -> str:
        found = contents.evidence(self._library, key, identity)
        shown = {
            "found": found,
            "filters": contents.filters_of(identity, self._library, key),
            "finding": contents.finding(self._library, key, identity),
            "links": self._links(key),
        }
        return page("evidence.html", shown, title=identity, nav=of_comparison(key, current=""))

    def calls(self, key: Key, request: Request, offset: int = 0) -> str:
        values = {name: value for name, value in request.query_params.items() if value}
        offset, limit = contents.bounded(offset, contents.PAGE_ROWS)
        answer = self._library.calls(key).answer(asked(values), offset=offset, limit=limit)
        shown = {
            "answer": answer,
            "values": values,
            "key": key,
            "closed": CLOSED,
            "links": self._links(key),
            "with_sort": with_sort,
            "turned": _turned(values, answer.total, offset),
        }
        return page(
            "calls.html", shown, title="Calls", nav=of_comparison(key, current="Calls"), scripts=(TABLE_SCRIPT,)
        )

    def call(self, key: Key, side: Side, rank: Rank, record_id: RecordId, session_id: str = "") -> str:
        found = contents.call(self._library, key, (side.value, rank, record_id, session_id))
        title = f"{side.value}:{record_id}"
        return page(
            "call.html", {"found": found, "links": self._links(key)}, title=title, nav=of_comparison(key, current="")
        )

    def undetermined(self, key: Key) -> str:
        view = comparison_view(self._library, key)
        nav = of_comparison(key, current="Undetermined")
        return page("undetermined.html", {"page": view.page, "links": view.links}, title="What was not seen", nav=nav)

    def source(self, key: Key, side: Side, file: File, line: Line = 0) -> str:
        found = contents.sources(self._library, key, side, file, line=line)
        shown = {
            "found": found,
            "side": side.value,
            "links": self._links(key),
            "names": {text.side: text.file for text in found.texts},
        }
        return page("source.html", shown, title=found.file, nav=of_comparison(key, current=""))

    def _links(self, key: str) -> ServerLinks:
        return contents.links_of(self._library, key, self._library.result(key))


def with_sort(values: dict[str, str], name: str, /) -> dict[str, str]:
    """Returns what a heading of the table leads to: its column, then the other way round, then no order."""
    others = {key: value for key, value in values.items() if key not in ("sort", "descending", "offset", "row")}
    if values.get("sort") != name:
        return others | {"sort": name}
    return others if values.get("descending") else others | {"sort": name, "descending": "1"}


def _turned(values: dict[str, str], total: int, offset: int) -> tuple[str, str]:
    """The addresses of the stretches before and after, for a page without script; "" where there is none."""
    others = {name: value for name, value in values.items() if name != "offset"}
    before, after = offset - contents.PAGE_ROWS, offset + contents.PAGE_ROWS
    return (
        "?" + urlencode(others | {"offset": max(0, before)}) if offset else "",
        "?" + urlencode(others | {"offset": after}) if after < total else "",
    )
