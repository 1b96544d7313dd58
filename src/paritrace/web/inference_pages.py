"""Pages of a run's inference evidence: the whole, one request, and the lines behind a figure (SU-10)."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from msgspec.structs import asdict

from paritrace.inference.result import LinkCounts
from paritrace.inference.vocabulary import Basis, LinkReason
from paritrace.inference.words import of_basis, of_reason
from paritrace.reports.html.request_lanes import request_lanes
from paritrace.reports.html.templates import NavLink
from paritrace.reports.inference.screens import loss_said
from paritrace.web import contents
from paritrace.web.inference_api import Looked
from paritrace.web.inference_evidence import REQUESTS, InferenceEvidence
from paritrace.web.inference_links import InferenceLinks
from paritrace.web.navigation import Key, of_run
from paritrace.web.rendering import page

EVENT_ROWS = 100


class InferencePages:
    """Each method answers one address."""

    def __init__(self, evidence: InferenceEvidence) -> None:
        self._evidence = evidence

    def routes(self) -> APIRouter:
        made = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
        made.add_api_route("/r/{key}/inference", self.whole)
        made.add_api_route("/r/{key}/inference/events", self.events)
        made.add_api_route("/r/{key}/inference/request/{identity:path}", self.request)
        return made

    def whole(self, key: Key, offset: int = 0) -> str:
        """What the artifact holds; `offset`: the first request of the table."""
        offset, _ = contents.bounded(offset, 1)
        shown = self._evidence.shown(key)
        values = {
            "shown": shown,
            "table": self._evidence.requests(key, offset=offset),
            "links": InferenceLinks(key),
            "links_told": {name: _told(counts) for name, counts in shown.links.items()},
            "losses": [(one, loss_said(one)) for one in shown.show.loss],
            "most": REQUESTS,
        }
        nav = (*of_run(key), NavLink("Inference", f"/r/{key}/inference", current=True))
        return page("inference.html", values, title="Inference evidence", nav=nav)

    def request(self, key: Key, identity: str, id: str = "") -> str:  # noqa: A002  the name of the query's field
        """One request; `id` is for an id that no path can hold."""
        served = self._evidence.request(key, identity or id)
        links, drawn = InferenceLinks(key), self._evidence.drawn(key, served)
        chart = request_lanes(
            drawn.requests,
            drawn.stages,
            served=served.iterations,
            iterations=drawn.iterations,
            address=links.iteration,
        )
        values = {"served": served, "chart": chart, "links": links}
        return page("inference_request.html", values, title=f"Request {served.asked[:80]}", nav=_below(key))

    def events(self, key: Key, looked: Looked, offset: int = 0) -> str:
        """Lines of the artifact."""
        offset, _ = contents.bounded(offset, 1)
        found = self._evidence.events(key, looked, offset=offset, limit=EVENT_ROWS)
        asked = {name: value for name, value in asdict(looked).items() if value}
        values = {"found": found, "links": InferenceLinks(key), "asked": asked, "most": EVENT_ROWS}
        return page("inference_events.html", values, title="Lines of evidence", nav=_below(key))


def _below(key: str) -> tuple[NavLink, ...]:
    return (*of_run(key), NavLink("Inference", f"/r/{key}/inference"))


def _told(counts: LinkCounts) -> list[tuple[str, str, int]]:
    """Word, what it means, and how many; bases first."""
    bases = [(name, of_basis(Basis(name)), number) for name, number in counts.by_basis.items()]
    return [*bases, *((name, of_reason(LinkReason(name)), number) for name, number in counts.by_reason.items())]
