"""The action `session-command`: any command of a resident session, on every rank or on none (AU-9, SE-4 to SE-9)."""

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, field

from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result, Seconds
from paritrace.session.api_records import CommandId, DryRun
from paritrace.session.commands import Fences, Kind, Reply


class SessionCommandRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`kind` and `body` as over HTTP: what a kind takes stands in docs/formats/session.md and in the session's OpenAPI.

    `command_id`: of the caller's choice; the same one again returns the first result. `fences`: what the caller
    believes; where that does not hold, nothing is done. `wait`: where it is a run, until that has ended, was stopped or
    has failed, within the patience. `dry_run`: say what would become of it, and ask for nothing.
    """

    directory: FilePath
    command_id: CommandId
    kind: Kind
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    fences: Fences = Fences()
    wait: bool = False
    dry_run: bool = False
    timeout_seconds: Annotated[
        Seconds | None, Meta(description="The caller's patience until all ranks have done it")
    ] = None


class SessionCommandResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="session-command"):
    """`reply`: what became of it, and at which step; None of a dry run, which has `would` instead."""

    reply: Reply | None
    would: DryRun | None


def session_command(request: SessionCommandRequest, _operation: Operation) -> SessionCommandResult:
    """Ask for a command.

    Raises:
        RequestError: Refused or Failed: `not_applied`, with all reasons of all ranks. Refused: `command_id_taken`, or
            `bad_command`: a key that its kind does not take.
        HostError: Refused: `coordinator_gone`; Failed: `coordinator_silent`.
    """
    from paritrace.session.client import Client, Options

    options = Options(request.command_id, request.fences, request.timeout_seconds)
    with Client(Path(request.directory)) as session:
        if request.dry_run:
            return SessionCommandResult(reply=None, would=session.try_out(request.kind, request.body, options))
        reply = session.command(request.kind, request.body, options, wait=request.wait)
        return SessionCommandResult(reply=reply, would=None)


ACTION = Action(
    name="session-command",
    summary="Run, stop, configure, save, load, capture or close a resident session, on every rank or on none.",
    request=SessionCommandRequest,
    result=SessionCommandResult,
    run=session_command,
    varying=("reply",),
)
