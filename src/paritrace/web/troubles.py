"""An error as the answer that was asked for: a page, or the document of SU-4 with its status."""

from collections.abc import Mapping
from types import MappingProxyType

from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from paritrace.errors import ParitraceError
from paritrace.loopback.faults import status_of
from paritrace.web.navigation import HOME
from paritrace.web.rendering import page

DOCUMENTS = "/api/"  # addresses below it answer with documents
STATUS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "no_such_page",
                "no_such_id",
                "no_calls_table",
                "no_result",
                "not_found",
                "no_such_figure",
                "no_such_request",
                "no_such_command",
            ),
            404,
        ),
        "foreign_host": 400,
        "no_token": 403,
        "wrong_token": 403,
        "foreign_origin": 403,
        "wrong_method": 405,
        "command_id_taken": 409,
        "body_too_large": 413,
        "not_json": 415,
        "lease_held": 423,
    }
)


def answer_of(error: ParitraceError, /, *, path: str) -> Response:
    """Returns the answer to who was let in."""
    if path.startswith(DOCUMENTS):
        return _document(error)
    html = page("error.html", {"error": error}, title=error.code, nav=(HOME,))
    return HTMLResponse(html, status_of(error, STATUS))


def refusal_of(error: ParitraceError, /, *, path: str) -> Response:
    """Returns the answer to who was not: two lines in place of a page, whose style and scripts would be refused too."""
    status = status_of(error, STATUS)
    found = _document(error) if path.startswith(DOCUMENTS) else PlainTextResponse(_lines(error), status)
    if status == 405:
        found.headers["Allow"] = "GET"
    return found


def _document(error: ParitraceError) -> Response:
    told: dict[str, object] = {
        "code": error.code,
        "kind": error.outcome.value,
        "message": error.message,
        "fix": error.fix,
    }
    if error.details:
        told["details"] = list(error.details)
    return JSONResponse({"ok": False, "error": told}, status_of(error, STATUS))


def _lines(error: ParitraceError) -> str:
    return f"{error.outcome.value}: {error.message} [{error.code}]\n{error.fix}\n"
