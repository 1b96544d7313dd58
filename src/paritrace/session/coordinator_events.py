"""What happens to the coordinator, and what its machine asks its shell to do (SE-3): records only."""

from typing import Any

from msgspec import Struct, field

from paritrace.session.commands import Body, Command, Reason, Reply
from paritrace.session.messages import FromRank, ToRank


class Opened(Struct, frozen=True):
    """The session opens: the first event there is. `body` comes back in `StartRanks`."""

    body: Body = field(default_factory=dict[str, Any])


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
    generation: int | None = None  # None: the present one


class Elapsed(Struct, frozen=True):
    """A timer that was set has run out; one that was set anew or cleared meanwhile never comes."""

    timer: str


class Written(Struct, frozen=True):
    """What `Keep` asked for (a manifest, a registered checkpoint) is on disk, or could not be written."""

    command_id: str
    ok: bool
    words: str = ""
    facts: Body = field(default_factory=dict[str, Any])


class Surveyed(Struct, frozen=True):
    """What `Survey` asked for: everything on disk that speaks against the checkpoint; empty where nothing does."""

    command_id: str
    reasons: tuple[Reason, ...] = ()


CoordinatorEvent = Opened | Asked | Withdrawn | Heard | Gone | Elapsed | Written | Surveyed


class Tell(Struct, frozen=True):
    """Write to a rank."""

    rank: int
    message: ToRank


class Settle(Struct, frozen=True):
    """A command has its result: whoever waits is told, and the same id again will be told the same.

    `unknown` alone is not the last word: it answers a withdrawal of what is under way, the result itself comes later.
    """

    reply: Reply


class Deny(Struct, frozen=True):
    """The id of another command came with this content: only whoever asked this one is told (SE-7)."""

    command: Command
    reason: Reason


class Record(Struct, frozen=True):
    """A line for the journal; `durable`: it is on disk before anything after it is done. `facts` by `what`:

    generation: event (started, ready, closed), generation, config_revision, step, inputs_digest
    generation: event (stale_participant), generation, rank (another generation's)
    generation: event (ended_at_once), generation, steps (by rank): closed with `now`
    command: id, kind, body, fences (when it is taken up)     result: id, kind, result, step, reasons, notes
    vote: id, kind, round, verdicts (by rank), digest         epoch: epoch, id, kind
    transition: before, after, step, epoch (of all ranks)     revision: revision, id, kind, step
    run: event (admitted, parked, resumed, ended, stopped), id, step, target, epoch, config_revision, schedule?
    checkpoint: event (saved, loaded), name, step, digest, content?, state_digests?, accepted?
    checkpoint: event (autosaved), name, step, digest, content, state_digests, seconds
    checkpoint: event (autosave_failed), step, rank, words, seconds
    inputs: digest, generation, step, id
    capture: id, name, steps, level, step, epoch, config_revision
    finding: rank, finding (unresponsive, stalled), words     failure: code, why, step, epoch
    """

    what: str
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


class Survey(Struct, frozen=True):
    """Look whether a checkpoint can be loaded at all, before a generation is begun for it (SE-7)."""

    command_id: str
    checkpoint: str


class FailStop(Struct, frozen=True):
    """End this generation: report, then tell and kill every rank within the bounds (SE-12, SE-20)."""

    why: str
    code: str


class StartRanks(Struct, frozen=True):
    """Start a new generation in the same directory: at first, by `rebuild` after an error, by `load` with rebuild."""

    generation: int
    body: Body


CoordinatorAction = Tell | Settle | Deny | Record | SetTimer | Keep | Survey | FailStop | StartRanks
