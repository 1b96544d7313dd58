"""What happens to the coordinator, and what its machine asks its shell to do (SE-3): records only."""

from typing import Any

from msgspec import Struct, field

from paritrace.session.commands import Body, Command, Reply
from paritrace.session.messages import FromRank, ToRank


class Asked(Struct, frozen=True):
    """A command has arrived; they are done in this order (SE-29)."""

    command: Command


class Withdrawn(Struct, frozen=True):
    """Whoever asked has given up: withdrawn if still queued, else unknown (SE-29)."""

    command_id: str


class Heard(Struct, frozen=True):
    """A rank has written."""

    rank: int
    message: FromRank


class Gone(Struct, frozen=True):
    """A rank's process has ended, or its line is closed. What is known of its end is the shell's to collect."""

    rank: int
    words: str


class Elapsed(Struct, frozen=True):
    """A timer that was set has run out; one that was set anew or cleared meanwhile never comes."""

    timer: str


class Written(Struct, frozen=True):
    """What `Keep` asked for (a manifest, a registered checkpoint) is on disk, or could not be written."""

    command_id: str
    ok: bool
    words: str = ""
    facts: Body = field(default_factory=dict[str, Any])


CoordinatorEvent = Asked | Withdrawn | Heard | Gone | Elapsed | Written


class Tell(Struct, frozen=True):
    """Write to a rank."""

    rank: int
    message: ToRank


class Settle(Struct, frozen=True):
    """A command has its result: whoever waits is told, and the same id again will be told the same."""

    reply: Reply


class Record(Struct, frozen=True):
    """A line for the journal; `durable`: it is on disk before anything after it is done."""

    what: str  # command, vote, transition, epoch, revision, run, checkpoint, inputs, capture, failure, generation
    facts: Body
    durable: bool = False


class SetTimer(Struct, frozen=True):
    """Set a timer by its name, in place of an earlier one of this name; `seconds` None clears it."""

    timer: str
    seconds: float | None


class Keep(Struct, frozen=True):
    """Write the manifest of a save, last of all, or register what a load or capture names (SE-8)."""

    command_id: str
    facts: Body


class FailStop(Struct, frozen=True):
    """End this generation: report, then tell and kill every rank within the bounds (SE-12, SE-20)."""

    why: str
    code: str


class StartRanks(Struct, frozen=True):
    """Start a new generation in the same directory: at first, by `rebuild` after an error, by `load` with rebuild."""

    generation: int
    body: Body


CoordinatorAction = Tell | Settle | Record | SetTimer | Keep | FailStop | StartRanks
