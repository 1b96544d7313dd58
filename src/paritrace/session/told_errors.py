"""An error that a coordinator told over HTTP, raised again where it was asked (SU-4)."""

import msgspec

from paritrace.errors import HostError, InternalError, Outcome, ParitraceError, RequestError
from paritrace.session.api_records import Trouble


def error_of(told: bytes, /) -> ParitraceError:
    """Return the error of an answer; of ours where the answer cannot be read."""
    try:
        error = msgspec.json.decode(told, type=Trouble).error
    except msgspec.DecodeError:
        return InternalError(
            f"the coordinator answered {told[:200]!r}",
            code="internal",
            fix="use the paritrace that the session was started with",
        )
    kind = HostError if error.code == "session_over" else RequestError
    return kind(error.message, code=error.code, fix=error.fix, outcome=Outcome(error.kind), details=error.details)
