"""The action `session-run`: steps of a resident session, admitted on all ranks or on none (AU-9, SE-5)."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result, Seconds
from paritrace.session.api_records import CommandId
from paritrace.session.bodies import Steps
from paritrace.session.commands import Fences, Reply


class SessionRunRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`command_id`: of the caller's choice; the same one again takes no further step and returns the first result.

    `wait`: until the run has ended, was stopped or has failed. `fences`: what the caller believes; where that does not
    hold, nothing is run.
    """

    directory: FilePath
    command_id: CommandId
    steps: Steps
    wait: bool = False
    autosave: bool = True
    fences: Fences = Fences()
    timeout_seconds: Annotated[Seconds | None, Meta(description="The caller's patience until all ranks have begun")] = (
        None
    )


class SessionRunResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="session-run"):
    """`reply`: at which step all ranks began; with `wait` at which they ended."""

    reply: Reply


def session_run(request: SessionRunRequest, _operation: Operation) -> SessionRunResult:
    """Ask for steps.

    Raises:
        RequestError: Refused or Failed: `not_applied`, with all reasons of all ranks; `command_id_taken`.
        HostError: Refused: `coordinator_gone`; Failed: `coordinator_silent`.
    """
    from paritrace.session.client import Client, Options

    options = Options(request.command_id, request.fences, request.timeout_seconds)
    with Client(Path(request.directory)) as session:
        reply = session.run(request.steps, autosave=request.autosave, wait=request.wait, options=options)
    return SessionRunResult(reply=reply)


ACTION = Action(
    name="session-run",
    summary="Take steps in a resident session, from where all ranks are.",
    request=SessionRunRequest,
    result=SessionRunResult,
    run=session_run,
    varying=("reply",),
)
