"""Pages of the whole: what there is, a run, its check and verification, and the files that every page needs (SU-10)."""

from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from paritrace.errors import RequestError
from paritrace.reports.attempts.sections import parts_of_comparison, parts_of_summary
from paritrace.reports.html.check_page import check_page
from paritrace.reports.html.links import InFile
from paritrace.reports.html.run_page import run_page
from paritrace.reports.html.templates import NavLink
from paritrace.web import contents
from paritrace.web.library import Library
from paritrace.web.navigation import HOME, NO_SUCH_PAGE, Key, of_run
from paritrace.web.rendering import MEDIA_TYPES, page, static


class Pages:
    """Each method answers one address."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def routes(self) -> APIRouter:
        made = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
        made.add_api_route("/", self.index)
        made.add_api_route("/f/{identity}", self.anchor)
        made.add_api_route("/r/{key}/", self.run)
        made.add_api_route("/r/{key}/check", self.check)
        made.add_api_route("/r/{key}/verify", self.verify)
        made.add_api_route("/k/{key}/", self.kept_check)
        made.add_api_route("/a/{key}/", self.attempts)
        made.add_api_route("/a/{key}/f/{figure:path}", self.figure)
        made.add_api_route("/s/{key}/", self.store)
        made.add_api_route("/static/{name}", self.file)
        made.add_api_route("/favicon.ico", self.icon)
        return made

    def index(self) -> str:
        here = NavLink("All", "/", current=True)
        return page("index.html", {"shelf": self._library.shelf()}, title="Runs and comparisons", nav=(here,))

    def anchor(self, identity: str) -> Response:
        """An anchor of the only comparison there is: the same id that `paritrace explain` takes."""
        return RedirectResponse(f"{_only(self._library)}f/{quote(identity, safe='')}", status_code=303)

    def run(self, key: Key) -> str:
        shown = run_page(contents.run_summary(self._library, key))
        values = {"page": shown, "key": key, "has_inference": contents.has_inference(self._library, key)}
        return page("run_view.html", values, title=shown.title or shown.run.run_id, nav=(HOME,))

    def check(self, key: Key) -> str:
        """What `paritrace check` says; its calls stand in no table, so that nothing leads to them."""
        shown = check_page(contents.checked(self._library, key))
        nav = of_run(key)
        return page("check.html", {"page": shown, "links": InFile(anchors=())}, title=shown.sentence, nav=nav)

    def verify(self, key: Key) -> str:
        found = contents.verification(self._library, key)
        nav = of_run(key)
        return page("verification.html", {"found": found, "key": key}, title="Verification", nav=nav)

    def kept_check(self, key: Key) -> str:
        shown = check_page(self._library.check(key))
        return page("check.html", {"page": shown, "links": InFile(anchors=())}, title=shown.sentence, nav=(HOME,))

    def attempts(self, key: Key) -> str:
        """What `paritrace attempts compare` says, of one configuration alone what `summarize` says."""
        shown = contents.attempts(self._library, key)
        told = shown.comparison
        parts = tuple(parts_of_comparison(told) if told.pairs else parts_of_summary(told.summary))
        return page("attempts_view.html", {"shown": shown, "parts": parts, "key": key}, title="Attempts", nav=(HOME,))

    def figure(self, key: Key, figure: str) -> str:
        found = contents.explained_figure(self._library, key, figure)
        nav = (HOME, NavLink("Attempts", f"/a/{key}/"))
        return page("figure.html", {"found": found}, title=figure, nav=nav)

    def store(self, key: Key) -> str:
        found = self._library.store(key)
        return page("store.html", {"found": found, "key": key}, title="Store", nav=(HOME,))

    def icon(self) -> Response:
        return self.file("icon.svg")

    def file(self, name: str) -> Response:
        content = static(name)
        if content is None:
            raise NO_SUCH_PAGE
        return Response(content, media_type=MEDIA_TYPES[name.rpartition(".")[2]])


def _only(library: Library) -> str:
    """The one comparison there is, for an address that names none.

    Raises:
        RequestError: Refused, `no_such_page`: there is none, or there are several.
    """
    keys = library.comparison_keys()
    if len(keys) != 1:
        raise RequestError(
            f"there are {len(keys)} comparisons here", code="no_such_page", fix="choose one on the first page, /"
        )
    return f"/c/{keys[0]}/"
