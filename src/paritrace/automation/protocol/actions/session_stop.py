"""The action `session-stop`: all ranks of a resident session parked at one step (AU-9, SE-6)."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result, Seconds
from paritrace.session.api_records import CommandId
from paritrace.session.commands import Fences, Reply


class SessionStopRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`command_id`: of the caller's choice; the same one again returns the first result."""

    directory: FilePath
    command_id: CommandId
    fences: Fences = Fences()
    timeout_seconds: Annotated[Seconds | None, Meta(description="The caller's patience until all ranks are parked")] = (
        None
    )


class SessionStopResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="session-stop"):
    """`reply`: the step that all ranks stand at, their device queues drained."""

    reply: Reply


def session_stop(request: SessionStopRequest, _operation: Operation) -> SessionStopResult:
    """Ask to stop.

    Raises:
        RequestError: Refused or Failed: `not_applied`, with all reasons of all ranks; `command_id_taken`.
        HostError: Refused: `coordinator_gone`; Failed: `coordinator_silent`.
    """
    from paritrace.session.client import Client, Options

    options = Options(request.command_id, request.fences, request.timeout_seconds)
    with Client(Path(request.directory)) as session:
        return SessionStopResult(reply=session.stop(options=options))


ACTION = Action(
    name="session-stop",
    summary="Park all ranks of a resident session at one step.",
    request=SessionStopRequest,
    result=SessionStopResult,
    run=session_stop,
    varying=("reply",),
)
