"""Pages that show a run or a comparison in Perfetto's page, and the traces that it opens (SU-8, SU-13)."""

from enum import StrEnum
from threading import Lock
from urllib.parse import quote, urlsplit

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from msgspec import Struct
from msgspec.structs import replace

from paritrace.reports.exporting import given_of
from paritrace.reports.formats import Cut
from paritrace.reports.html.templates import NavLink
from paritrace.reports.traces.of_both import has_evidence_too, write_both
from paritrace.reports.traces.of_comparison import write_comparison
from paritrace.reports.traces.of_inference import has_evidence_alone, write_inference
from paritrace.reports.traces.of_run import ranks_of, write_run
from paritrace.web import navigation
from paritrace.web.library import Library
from paritrace.web.rendering import page

MOST_CALLS = 600_000  # of all ranks of a trace: 40 MB here, and Perfetto's page opens it within a few seconds
MEDIA_TYPE = "application/octet-stream"
PUBLIC = "https://ui.perfetto.dev"
INSTALL = "pip install 'paritrace[perfetto-ui]'"
EXPANDED = (  # what Perfetto's page does first: tracks of ranks and sides are shown, not only their names
    '[{"id":"dev.perfetto.ExpandTracksByRegex","args":'
    '["^(rank |baseline$|candidate$|calls$|restart |.* rank |requests$|iterations$|devices$)"]}]'
)
_one_at_a_time = Lock()  # a trace takes memory and a core; two windows take turns


class Kind(StrEnum):
    """What a trace is of, as it stands in addresses."""

    RUN = "r"
    COMPARISON = "c"


class Timeline(Struct, frozen=True):
    """A page with a timeline. `frame`: the address of Perfetto's page with this trace, "" where it is not installed."""

    kind: Kind
    key: str
    path: str
    frame: str
    most_calls: int = MOST_CALLS
    public: str = PUBLIC
    install: str = INSTALL


class Timelines:
    """Each method answers one address. `perfetto`: where Perfetto's page is served, "" without it."""

    def __init__(self, library: Library, *, perfetto: str) -> None:
        self._library = library
        self._perfetto = perfetto

    def routes(self) -> APIRouter:
        made = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
        made.add_api_route("/r/{key}/timeline", self.of_run)
        made.add_api_route("/c/{key}/timeline", self.of_comparison)
        made.add_api_route("/r/{key}/trace.pftrace", self.trace_of_run)
        made.add_api_route("/c/{key}/trace.pftrace", self.trace_of_comparison)
        return made

    def of_run(self, key: navigation.Key) -> str:
        with self._library.run(key) as run:
            path = str(run.path)
        nav = (*navigation.of_run(key), NavLink("Timeline", f"/r/{key}/timeline", current=True))
        return self._page(Kind.RUN, key, path, nav)

    def of_comparison(self, key: navigation.Key) -> str:
        return self._page(
            Kind.COMPARISON, key, str(self._library.result(key).path), navigation.of_comparison(key, current="Timeline")
        )

    def trace_of_run(self, key: navigation.Key) -> Response:
        return _download(trace_of(self._library, Kind.RUN, key), key)

    def trace_of_comparison(self, key: navigation.Key) -> Response:
        return _download(trace_of(self._library, Kind.COMPARISON, key), key)

    def _page(self, kind: Kind, key: str, path: str, nav: tuple[NavLink, ...]) -> str:
        frame = f"{self._perfetto}index.html#!/?{_asked(self._perfetto, kind, key)}" if self._perfetto else ""
        return page("timeline.html", {"timeline": Timeline(kind, key, path, frame)}, title="Timeline", nav=nav)


def origin_of(address: str, /) -> str:
    """Returns scheme, host and port of an address, "" of none."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def trace_of(library: Library, kind: Kind, key: str, /) -> bytes:
    """Returns the trace of all ranks, at most MOST_CALLS calls of it; what is left out is counted in it.

    Of a run with inference evidence it is that of the evidence, beside its calls where it has any (IN-19).

    Raises:
        RequestError: Refused: `no_such_page`, `no_calls_table`.
        EvidenceError: Refused: what opening the run or result may say.
    """
    with _one_at_a_time:
        sink = _Held()
        match kind:
            case Kind.RUN:
                with library.run(key) as run:
                    if has_evidence_alone(run.folder):
                        write_inference(run.folder, sink, most_in_all=MOST_CALLS)
                    elif has_evidence_too(run.folder):
                        write_both(run, sink, cut=Cut(), most_in_all=MOST_CALLS)
                    else:
                        write_run(run, sink, cut=_cut(len(ranks_of(run))))
            case Kind.COMPARISON:
                library.calls(key)  # holds the table to its manifest
                kept = library.result(key).kept
                if kept is None:
                    raise navigation.NO_SUCH_PAGE
                with given_of(kept) as given:
                    cut = _cut(len(kept.comparison.ranks_compared))
                    write_comparison(replace(given, cut=cut), sink)
        return bytes(sink.data)


class _Held:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes, /) -> None:
        self.data += data


def _cut(num_ranks: int) -> Cut:
    return Cut(max_events=MOST_CALLS // max(1, num_ranks))


def _asked(perfetto: str, kind: Kind, key: str) -> str:
    trace = f"{perfetto}trace/{kind}/{key}.pftrace"
    return f"mode=embedded&hideSidebar=true&url={quote(trace, safe='')}&startupCommands={quote(EXPANDED, safe='')}"


def _download(data: bytes, key: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{key}.pftrace"'}
    return Response(data, media_type=MEDIA_TYPE, headers=headers)
