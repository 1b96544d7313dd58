"""The action `capabilities`: what can be asked, and what this installation can observe (AU-3, AU-21)."""

from msgspec import Struct

from paritrace import __version__
from paritrace.automation.protocol.records import Action, Operation, Result
from paritrace.automation.protocol.schemas import request_schema, result_schema, schema_sha256


class ActionFacts(Struct, frozen=True):
    """One action. `request_schema_sha256` is null where it takes no request."""

    name: str
    summary: str
    request_schema_sha256: str | None
    result_schema_sha256: str
    varying: tuple[str, ...]
    writes: bool


class CapabilitiesResult(Result, frozen=True, kw_only=True, tag="capabilities"):
    paritrace_version: str
    actions: tuple[ActionFacts, ...]
    limits: tuple[str, ...]


LIMITS = (
    "no budget of input and output for a whole cluster: pace is set for each node",
    "coverage of training steps is what was observed and declared, not what a step means",
    "ranks are paired by their number; another pairing needs an alignment map",
    "nothing is remembered between operations: every request is checked from the start",
)


def capabilities(_request: None, _operation: Operation) -> CapabilitiesResult:
    """Say what can be asked here."""
    from paritrace.automation.protocol.table import all_actions

    return CapabilitiesResult(
        paritrace_version=__version__, actions=tuple(_facts(action) for action in all_actions()), limits=LIMITS
    )


def _facts(action: Action) -> ActionFacts:
    request = request_schema(action)
    return ActionFacts(
        name=action.name,
        summary=action.summary,
        request_schema_sha256=None if request is None else schema_sha256(request),
        result_schema_sha256=schema_sha256(result_schema(action)),
        varying=action.varying,
        writes=action.writes,
    )


ACTION = Action(
    name="capabilities",
    summary="Say which actions there are and what this installation can observe.",
    request=None,
    result=CapabilitiesResult,
    run=capabilities,
)
