"""What a caller asks of a host, and what is refused of it before anything is begun: pure (RR-6)."""

from typing import Any

import msgspec
from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.evidence.ids import checked_id
from paritrace.process.plain_values import NOT_FINITE, is_finite

FOREVER_SECONDS = 366 * 86400.0  # an invocation without a timeout: the caller's wish, and still a bound


class Request(Struct, frozen=True):
    """What a caller asks for."""

    request_id: str
    input: Any
    context: dict[str, Any]
    overrides: dict[str, Any]
    timeout_seconds: float | None


def check_request(request: Request) -> None:
    """Refuse what could not be sent, before anything is begun for it.

    Raises:
        RequestError: Refused: `bad_id`, `bad_invocation`.
    """
    checked_id(request.request_id, what="request id")
    limit: object = request.timeout_seconds  # a caller without a type checker may give anything
    seconds = limit if isinstance(limit, int | float) and not isinstance(limit, bool) else 0.0
    if limit is not None and not 0 < seconds <= FOREVER_SECONDS:  # NaN is in no range
        raise RequestError(
            f"timeout_seconds is {request.timeout_seconds!r}",
            code="bad_invocation",
            fix="give seconds above 0, at most a year, or None",
        )
    try:
        msgspec.json.encode((request.input, request.context, request.overrides))
        if not is_finite((request.input, request.context, request.overrides)):
            raise ValueError(NOT_FINITE)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise RequestError(
            f"the request cannot be written as JSON: {error}",
            code="bad_invocation",
            fix="give input, context and overrides of plain values: objects, arrays, texts, numbers, true, false, null",
        ) from None
