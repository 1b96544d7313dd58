"""Whatever a framework or a route raises, as one of our errors with an HTTP status (SU-4, SE-17)."""

from collections.abc import Callable, Mapping

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from paritrace.errors import EvidenceError, HostError, InternalError, Outcome, ParitraceError, RequestError


def known_error(
    error: Exception, /, *, missing: ParitraceError, invalid: Callable[[str], ParitraceError], report: str
) -> ParitraceError:
    """Return an error as ours.

    Args:
        error: What was raised.
        missing: What is told of an address that nothing answers, or not with that method.
        invalid: Makes the error of a request that does not fit its route, from what is wrong in words.
        report: How to mend a fault of our own: where it is reported.
    """
    match error:
        case ParitraceError():
            return error
        case HTTPException():
            return missing
        case RequestValidationError():
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            return invalid(f"{where}: {first['msg']}")
        case _:
            return InternalError(
                f"a fault of paritrace itself: {type(error).__name__}: {error}",
                code="internal",
                fix=report,
                outcome=Outcome.FAILED,
            )


def status_of(error: ParitraceError, by_code: Mapping[str, int], /) -> int:
    """Return the status that an error is answered with: that of its code, else that of its kind."""
    match error:
        case ParitraceError(code=code) if code in by_code:
            return by_code[code]
        case RequestError():
            return 400
        case EvidenceError() | HostError():
            return 409
        case _:
            return 500
