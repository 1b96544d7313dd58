"""What a failed request of the S3 library means: one error with a mend for each kind (ST-8a)."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from paritrace.errors import HostError, ParitraceError

ABSENT = frozenset({"NoSuchKey", "404", "NotFound"})
TAKEN = frozenset({409, 412})
DENIED = frozenset({401, 403})
BUSY = frozenset({408, 429, 500, 502, 503, 504})
FULL = 507
_SKEWED = "RequestTimeTooSkewed"


def failures() -> tuple[type[BaseException], ...]:
    """The exceptions of a request that did not succeed."""
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

    return (ClientError, BotoCoreError, HTTPClientError, ParitraceError)


def means_absent(error: BaseException) -> bool:
    """Whether the service says that no object has the name."""
    return _code(error) in ABSENT


def means_taken(error: BaseException) -> bool:
    """Whether the service says that the name is taken, or just being taken."""
    return _status(error) in TAKEN


@contextmanager
def translated(label: str, doing: str) -> Generator[None, None, None]:
    """Turn an exception of the library into a `HostError`; ours pass, also from inside a body that was being sent."""
    try:
        yield
    except ParitraceError:
        raise
    except failures() as cause:
        ours = _ours(cause)
        if ours is not None:
            raise ours from None
        raise _error(cause, label, doing) from cause


def _ours(error: BaseException | None) -> ParitraceError | None:
    """The error of ours that the library has wrapped in its own."""
    for _ in range(8):
        if error is None or isinstance(error, ParitraceError):
            return error
        inner = getattr(error, "kwargs", {}).get("error")
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__
    return None


def _error(cause: BaseException, label: str, doing: str) -> HostError:
    said = f"{doing} {label}: {' '.join(str(cause).split())[:300]}"
    status, code = _status(cause), _code(cause)
    if code in ABSENT:
        return HostError(
            said, code="not_visible_here", fix="it may be published and not visible here yet: try again later"
        )
    if code == "NoSuchBucket" or status == 301:
        return HostError(said, code="no_bucket", fix="make the bucket, or set AWS_REGION to its region")
    if status in TAKEN:
        return HostError(said, code="already_there", fix="another object has that name: nothing was changed")
    if code == _SKEWED:
        return HostError(said, code="target_refused", fix="set this machine's clock: the service allows 15 minutes")
    return _by_status(said, status, kind=type(cause).__name__)


def _by_status(said: str, status: int, *, kind: str) -> HostError:
    if status in DENIED:
        return HostError(said, code="not_permitted", fix="check the credentials and what they may do with the bucket")
    if status == FULL:
        return HostError(said, code="disk_full", fix="free space on the object storage, then sync again")
    if "Credential" in kind or kind == "ProfileNotFound":
        return HostError(
            said, code="no_credentials", fix="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        )
    if status in BUSY or not status:
        return HostError(
            said,
            code="target_unreachable",
            fix="check network, endpoint (AWS_ENDPOINT_URL) and service; it is tried again",
        )
    return HostError(said, code="target_refused", fix="see what the service says; nothing was published")


def _response(error: BaseException) -> dict[str, Any]:
    return cast(dict[str, Any], getattr(error, "response", None) or {})


def _status(error: BaseException) -> int:
    return int(_response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _code(error: BaseException) -> str:
    return str(_response(error).get("Error", {}).get("Code", ""))
