"""The application: routes behind the guard, every error a document that says how to mend it (SE-17)."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from paritrace.errors import ParitraceError, RequestError
from paritrace.loopback.faults import known_error
from paritrace.loopback.schemas import Schemas
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.http.answers import trouble
from paritrace.session.coordinator.http.described import API_VERSION, RECORDS, documented
from paritrace.session.coordinator.http.guard import Guard
from paritrace.session.coordinator.http.routes import routes

DOCUMENT = "/v1/openapi.json"


def application(desk: Desk, /, *, token: str) -> FastAPI:
    """Return the application over a desk; only who shows the token is answered."""
    schemas = Schemas(RECORDS)
    made = FastAPI(
        title="paritrace session",
        version=API_VERSION,
        docs_url=None,
        redoc_url=None,
        openapi_url=DOCUMENT,
        redirect_slashes=False,
    )
    made.include_router(routes(desk, schemas))
    for kind in (Exception, ParitraceError, HTTPException, RequestValidationError):
        made.add_exception_handler(kind, _answered)
    made.add_middleware(Guard, token=token)
    made.openapi = lambda: _documented(made, schemas)  # type: ignore[method-assign]  # FastAPI's own way to extend it
    return made


def _documented(made: FastAPI, schemas: Schemas) -> dict[str, Any]:
    if made.openapi_schema is None:
        found = get_openapi(title=made.title, version=made.version, routes=made.routes)
        made.openapi_schema = documented(found, schemas)
    return made.openapi_schema


async def _answered(_request: Request, error: Exception) -> Response:
    return trouble(_known(error))


def _known(error: Exception) -> ParitraceError:
    missing = (
        RequestError("this route has no such method", code="wrong_method", fix=f"see {DOCUMENT} for those it has")
        if isinstance(error, HTTPException) and error.status_code == 405
        else RequestError("there is no such route", code="no_such_route", fix=f"see {DOCUMENT} for what there is")
    )
    return known_error(
        error,
        missing=missing,
        invalid=lambda words: RequestError(words, code="bad_command", fix=f"see {DOCUMENT}"),
        report="look into the coordinator's output and report what it says",
    )
