"""The rule of a dry run: the machine is asked what it would do, and what it says is thrown away (SE-17)."""

from msgspec import Struct

from paritrace.session.commands import Command, Reason
from paritrace.session.coordinator_events import Asked, Deny, Settle
from paritrace.session.coordinator_machine import step
from paritrace.session.coordinator_record import Coordinator

BEGIN, WAIT = "begin", "wait"


class Tried(Struct, frozen=True):
    """What would become of a command: `begin`, `wait` behind others, or a result with its reasons."""

    would: str
    reasons: tuple[Reason, ...] = ()


def tried(machine: Coordinator, command: Command, /) -> Tried:
    """Return what would become of a command now. Ranks may refuse what is begun: they are not asked."""
    after, actions = step(machine, Asked(command))
    for action in actions:
        match action:
            case Settle(reply) if reply.command_id == command.id:
                return Tried(reply.result.value, reply.reasons)
            case Deny():
                return Tried("refused", (action.reason,))
            case _:
                pass
    begun = after.starting if after.under is None else after.under.command
    return Tried(BEGIN if begun is not None and begun.id == command.id else WAIT)
