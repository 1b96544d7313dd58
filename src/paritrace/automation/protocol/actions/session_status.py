"""The action `session-status`: a resident session at this moment (AU-9, SE-14)."""

from pathlib import Path

from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result
from paritrace.session.status import Status


class SessionStatusRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`directory`: that of a session whose coordinator runs."""

    directory: FilePath


class SessionStatusResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="session-status"):
    """`status` is the document of `paritrace session status --json`."""

    status: Status


def session_status(request: SessionStatusRequest, _operation: Operation) -> SessionStatusResult:
    """Ask a session's coordinator; nothing is changed.

    Raises:
        RequestError: Refused: `not_a_session`.
        HostError: Refused: `coordinator_gone`; Failed: `coordinator_silent`.
    """
    from paritrace.session.client import Client

    with Client(Path(request.directory)) as session:
        return SessionStatusResult(status=session.status())


ACTION = Action(
    name="session-status",
    summary="Show a resident session: state, step, ranks, metrics, what is under way, what failed.",
    request=SessionStatusRequest,
    result=SessionStatusResult,
    run=session_status,
    varying=("status",),
)
