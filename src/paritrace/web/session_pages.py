"""The page of a resident session, its metrics and previews, and the same for programs (SU-10)."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi.responses import HTMLResponse, Response
from msgspec import Struct

from paritrace.errors import ParitraceError, RequestError
from paritrace.files import LOCAL
from paritrace.session.journal import Journal
from paritrace.session.kept_records import PreviewRecord
from paritrace.session.metrics import KeptMetrics, read_metrics
from paritrace.session.opening import read_journal
from paritrace.session.segments import segments_of
from paritrace.web.api import document
from paritrace.web.library import Library
from paritrace.web.metrics_chart import MetricsShown, metrics_shown
from paritrace.web.navigation import HOME, Key
from paritrace.web.rendering import page
from paritrace.web.schemas import answer_with
from paritrace.web.session_asked import LEVELS, MOST_CAPTURED
from paritrace.web.session_view import MOST_FILES, SessionShown, preview_file, session_shown

PICTURES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"
}  # fmt: skip
TEXTS = frozenset({".txt", ".md", ".json", ".csv", ".log", ".yaml", ".yml"})
TEXT_CHARACTERS = 20_000  # of each text that stands on the page
PICTURE_BYTES = 32 << 20  # one that is larger is named and not shown

Generation = Annotated[int, InPath(ge=0, le=2**53)]


class PreviewFile(Struct, frozen=True):
    """A file of the latest preview: a picture by its address, a text as it is, or its size alone."""

    name: str
    num_bytes: int
    picture: str = ""
    text: str | None = None
    cut: bool = False
    why_not: str = ""


class SessionPages:
    """Each method answers one address."""

    def __init__(self, library: Library, *, allow_control: bool = False) -> None:
        self._library = library
        self._allow_control = allow_control

    def routes(self) -> APIRouter:
        made = APIRouter(default_response_class=HTMLResponse)
        made.add_api_route("/session/{key}/", self.whole, include_in_schema=False)
        made.add_api_route("/session/{key}/previews/{generation}/{name:path}", self.picture, include_in_schema=False)
        made.add_api_route(
            "/api/sessions/{key}",
            self.shown,
            responses=answer_with(SessionShown),
            summary="A resident session: its state, commands, segments, checkpoints, failures",
            tags=["read only"],
        )
        made.add_api_route(
            "/api/sessions/{key}/metrics",
            self.metrics,
            responses=answer_with(KeptMetrics),
            summary="The samples of its metrics, as session metrics --json",
            tags=["read only"],
        )
        return made

    def whole(self, key: Key) -> str:
        directory = self._library.session(key)
        journal = read_journal(directory)
        shown = session_shown(directory, journal)
        values = {
            "shown": shown,
            "key": key,
            "files": _files(shown.preview, directory, key),
            "metrics": _metrics(directory, journal),
            "allow_control": self._allow_control,
            "levels": LEVELS,
            "most_captured": MOST_CAPTURED,
        }
        live = ("/static/session.js", "/static/session_control.js") if self._allow_control else ("/static/session.js",)
        scripts = live if shown.is_live else ()
        title = f"Session {Path(shown.path).name}"
        return page("session.html", values, title=title, nav=(HOME,), scripts=scripts)

    def shown(self, key: Key) -> Response:
        return document(session_shown(self._library.session(key)))

    def metrics(self, key: Key) -> Response:
        return document(read_metrics(self._library.session(key)))

    def picture(self, key: Key, generation: Generation, name: str) -> Response:
        """A picture of a preview. Texts stand on the page: nothing of the workload's is opened as a page itself."""
        path = preview_file(self._library.session(key), generation, name)
        media = PICTURES.get(path.suffix.lower(), "application/octet-stream")
        return Response(path.read_bytes(), media_type=media)


def _metrics(directory: Path, journal: Journal) -> MetricsShown:
    try:
        return metrics_shown(read_metrics(directory), segments_of(journal.lines))
    except ParitraceError as error:
        return MetricsShown((), (), (f"{error.message}.",))


def _files(preview: PreviewRecord | None, directory: Path, key: str) -> tuple[PreviewFile, ...]:
    """What of the latest preview can be looked at."""
    if preview is None:
        return ()
    return tuple(_file(preview, directory, key, name) for name in preview.files[:MOST_FILES])


def _file(preview: PreviewRecord, directory: Path, key: str, name: str) -> PreviewFile:
    try:
        path = preview_file(directory, preview.generation, name)
    except RequestError as error:
        return PreviewFile(name, 0, why_not=error.message)
    size, suffix = LOCAL.size(path), path.suffix.lower()
    if suffix in PICTURES and size <= PICTURE_BYTES:
        return PreviewFile(name, size, picture=f"/session/{key}/previews/{preview.generation}/{name}")
    if suffix not in TEXTS:
        return PreviewFile(name, size)
    with path.open("rb") as opened:
        text = opened.read(4 * TEXT_CHARACTERS).decode("utf-8", "replace")[:TEXT_CHARACTERS]
    return PreviewFile(name, size, text=text, cut=size > len(text.encode()))
