"""The application: routes behind the guard, every error a document that says how to mend it (SE-17)."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from paritrace import __version__
from paritrace.errors import InternalError, Outcome, ParitraceError, RequestError
from paritrace.loopback.schemas import Schemas
from paritrace.loopback.tokens import HOSTS
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.http.answers import trouble
from paritrace.session.coordinator.http.guard import Guard
from paritrace.session.coordinator.http.routes import RECORDS, routes


def application(desk: Desk, /, *, token: str) -> FastAPI:
    """Return the application over a desk; only who shows the token is answered."""
    schemas = Schemas(RECORDS)
    made = FastAPI(
        title="paritrace session", version=__version__, docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json"
    )
    made.include_router(routes(desk, schemas))
    for kind in (Exception, ParitraceError, HTTPException, RequestValidationError):
        made.add_exception_handler(kind, _answered)
    made.add_middleware(Guard, token=token)
    made.add_middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)
    made.openapi = lambda: _documented(made, schemas)  # type: ignore[method-assign]  # FastAPI's own way to extend it
    return made


def _documented(made: FastAPI, schemas: Schemas) -> dict[str, Any]:
    if made.openapi_schema is None:
        found = get_openapi(title=made.title, version=made.version, routes=made.routes)
        made.openapi_schema = schemas.with_components(found)
    return made.openapi_schema


async def _answered(_request: Request, error: Exception) -> Response:
    return trouble(_known(error))


def _known(error: Exception) -> ParitraceError:
    match error:
        case ParitraceError():
            return error
        case HTTPException():
            return RequestError(
                f"no such route ({error.status_code})",
                code="no_such_route",
                fix="see /v1/openapi.json for what there is",
            )
        case RequestValidationError():
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            return RequestError(f"{where}: {first['msg']}", code="bad_command", fix="see /v1/openapi.json")
        case _:
            return InternalError(
                f"a fault of paritrace itself: {type(error).__name__}: {error}",
                code="internal",
                fix="look into the coordinator's output and report what it says",
                outcome=Outcome.FAILED,
            )
