"""The application: pages and API over one library, behind the guard, every error a page that says how to mend it."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from paritrace import __version__
from paritrace.errors import ParitraceError, RequestError
from paritrace.loopback.faults import known_error, status_of
from paritrace.loopback.tokens import HOSTS
from paritrace.web import api, inference_api
from paritrace.web.comparison_pages import ComparisonPages
from paritrace.web.guard import Guard
from paritrace.web.inference_evidence import InferenceEvidence
from paritrace.web.inference_pages import InferencePages
from paritrace.web.library import Library
from paritrace.web.navigation import HOME, NO_SUCH_PAGE
from paritrace.web.pages import Pages
from paritrace.web.rendering import page
from paritrace.web.schemas import with_components
from paritrace.web.session_pages import SessionPages
from paritrace.web.timelines import Timelines, origin_of

NOT_FOUND: dict[str, int] = dict.fromkeys(
    (
        "no_such_page",
        "no_such_id",
        "no_calls_table",
        "no_result",
        "not_found",
        "no_such_figure",
        "no_such_request",
    ),
    404,
)


def application(path: Path, /, *, token: str, origin: str, perfetto: str = "") -> FastAPI:
    """Returns the application over everything at `path`; `origin` is the address it is served at.

    `perfetto`: where Perfetto's page is served (`web.perfetto`), "" where it is not installed.
    """
    library = Library(path)
    made = FastAPI(
        title="paritrace", version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json"
    )
    made.include_router(api.routes(library))
    made.include_router(Pages(library).routes())
    inference = InferenceEvidence(library)
    made.include_router(inference_api.routes(inference))
    made.include_router(InferencePages(inference).routes())
    made.include_router(ComparisonPages(library).routes())
    made.include_router(SessionPages(library).routes())
    made.include_router(Timelines(library, perfetto=perfetto).routes())
    made.add_exception_handler(Exception, _answered)
    for kind in (ParitraceError, HTTPException, RequestValidationError):
        made.add_exception_handler(kind, _answered)
    made.add_middleware(Guard, token=token, origin=origin, frames=origin_of(perfetto))
    made.add_middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)
    made.openapi = lambda: _documented(made)  # type: ignore[method-assign]  # the way that FastAPI itself describes
    return made


def _documented(made: FastAPI) -> dict[str, Any]:
    if made.openapi_schema is None:
        found = get_openapi(title=made.title, version=made.version, routes=made.routes)
        made.openapi_schema = with_components(found)
    return made.openapi_schema


async def _answered(request: Request, error: Exception) -> Response:
    """An error as the answer that was asked for: a page, or the document of SU-4."""
    known = _known(error)
    told = {"code": known.code, "kind": known.outcome.value, "message": known.message, "fix": known.fix}
    status = status_of(known, NOT_FOUND)
    if request.url.path.startswith("/api/"):
        return JSONResponse({"ok": False, "error": told}, status)
    return HTMLResponse(page("error.html", {"error": known}, title=known.code, nav=(HOME,)), status)


def _known(error: Exception) -> ParitraceError:
    return known_error(
        error,
        missing=NO_SUCH_PAGE,
        invalid=lambda words: RequestError(words, code="bad_filter", fix="correct the address"),
        report="run paritrace view with --debug and report what it prints",
    )
