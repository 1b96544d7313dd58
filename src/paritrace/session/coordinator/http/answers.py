"""Records and errors as HTTP answers (SE-17, SU-4)."""

from types import MappingProxyType

from msgspec import json as msgspec_json
from starlette.responses import Response

from paritrace.errors import ParitraceError
from paritrace.loopback.faults import status_of
from paritrace.session.api_records import ErrorTold, Trouble

_ENCODER = msgspec_json.Encoder()
STATUS = MappingProxyType(
    {
        "wrong_token": 401,
        "foreign_origin": 403,
        "no_such_route": 404,
        "no_such_command": 404,
        "command_forgotten": 404,
        "no_such_revision": 404,
        "wrong_method": 405,
        "command_id_taken": 409,
        "body_too_large": 413,
        "lease_held": 423,
        "session_over": 503,
    }
)


def answer(record: object, *, status: int = 200) -> Response:
    """Return a record as a JSON document, in one piece."""
    return Response(_ENCODER.encode(record), status, media_type="application/json")


def trouble(error: ParitraceError) -> Response:
    """Return an error as the document that every command prints in place of a result."""
    told = ErrorTold(error.code, error.outcome.value, error.message, error.fix, error.details)
    return answer(Trouble(told), status=status_of(error, STATUS))
