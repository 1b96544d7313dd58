"""The application: pages and API over one library, behind the guard, every error a page that says how to mend it."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from paritrace import __version__
from paritrace.errors import ParitraceError, RequestError
from paritrace.loopback.faults import known_error
from paritrace.web import api, inference_api
from paritrace.web.comparison_pages import ComparisonPages
from paritrace.web.guard import Guard
from paritrace.web.inference_evidence import InferenceEvidence
from paritrace.web.inference_pages import InferencePages
from paritrace.web.library import Library
from paritrace.web.navigation import NO_SUCH_PAGE
from paritrace.web.pages import Pages
from paritrace.web.schemas import with_components
from paritrace.web.session_commands import SessionCommands
from paritrace.web.session_pages import SessionPages
from paritrace.web.timelines import Timelines, origin_of
from paritrace.web.troubles import answer_of


def application(path: Path, /, *, token: str, origin: str, perfetto: str = "", allow_control: bool = False) -> FastAPI:
    """Returns the application over everything at `path`; `origin` is the address it is served at.

    `perfetto`: where Perfetto's page is served (`web.perfetto`), "" where it is not installed. `allow_control`: whether
    sessions may be commanded from their pages; without it there is no such route.
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
    made.include_router(SessionPages(library, allow_control=allow_control).routes())
    if allow_control:
        made.include_router(SessionCommands(library).routes())
    made.include_router(Timelines(library, perfetto=perfetto).routes())
    made.add_exception_handler(Exception, _answered)
    for kind in (ParitraceError, HTTPException, RequestValidationError):
        made.add_exception_handler(kind, _answered)
    made.add_middleware(Guard, token=token, origin=origin, frames=origin_of(perfetto), allow_control=allow_control)
    made.openapi = lambda: _documented(made)  # type: ignore[method-assign]  # the way that FastAPI itself describes
    return made


def _documented(made: FastAPI) -> dict[str, Any]:
    if made.openapi_schema is None:
        found = get_openapi(title=made.title, version=made.version, routes=made.routes)
        made.openapi_schema = with_components(found)
    return made.openapi_schema


async def _answered(request: Request, error: Exception) -> Response:
    return answer_of(_known(error), path=request.url.path)


def _known(error: Exception) -> ParitraceError:
    return known_error(
        error,
        missing=NO_SUCH_PAGE,
        invalid=lambda words: RequestError(words, code="bad_filter", fix="correct the address"),
        report="run paritrace view with --debug and report what it prints",
    )
