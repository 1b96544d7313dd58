"""What the machine of the coordinator holds, and one turn of it (SE-3)."""

from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from paritrace.session.commands import Body, Command, Reason, Reply, Result
from paritrace.session.coordinator_events import CoordinatorAction, Record, SetTimer, Settle, Tell
from paritrace.session.messages import Answer, Beat, Joined, RoundName, ToRank
from paritrace.session.states import RankState

REMEMBERED = 100  # replies; copied whole with every command
COORDINATOR = -1  # whose reason it is where it is no rank's


class Phase(StrEnum):
    """What the session as a whole is in."""

    STARTING = "starting"  # ranks are started, join, load and build
    READY = "ready"
    ERROR = "error"  # this generation's work is over; rebuild, load with rebuild, or close
    CLOSING = "closing"
    CLOSED = "closed"


class Known(Struct, frozen=True):
    """What is known of one rank. `state` None: it has said none yet."""

    rank: int
    joined: Joined | None = None
    state: RankState | None = None
    epoch: int = 0
    step: int = 0
    config_revision: int = 0
    built: bool = False
    running_already: bool = False  # it was built into a loop that runs
    leaving: bool = False  # its loop is over, or it was told to close
    gone: bool = False
    beat: Beat | None = None
    findings: tuple[str, ...] = ()


class UnderWay(Struct, frozen=True):
    """The command under way. `reply`: its result where that is known before its last round."""

    command: Command
    rounds: tuple[RoundName, ...]  # those still to come after this one
    name: RoundName
    epoch: int  # the one it brings; while it resumes a run, the present one
    answers: tuple[Answer | None, ...] = ()
    voted: bool = False  # the barrier was sent: the epoch is its own on every rank, sooner or later
    agreed: int | None = None
    body: Body = field(default_factory=dict[str, Any])
    facts: tuple[Body, ...] = ()  # by rank, of the last round that told any
    digest: str | None = None
    notes: tuple[str, ...] = ()
    keeping: bool = False  # its manifest is being written
    reply: Reply | None = None


class Coordinator(Struct, frozen=True):
    """The session as its coordinator knows it; what `status` shows is made of this."""

    world_size: int
    generation: int
    bounds: dict[str, float]
    stops_ranks: bool
    ranks: tuple[Known, ...]
    phase: Phase = Phase.STARTING
    epoch: int = 0
    config_revision: int = 0
    step: int = 0  # all ranks were there at once; while a run goes on, where it began or resumed
    target: int | None = None  # of the run that is not over
    run_epoch: int = 0
    parked: bool = False  # within a run, at `step`
    ended: frozenset[int] = frozenset()  # ranks that have come to the target
    under: UnderWay | None = None
    last: Command | None = None  # that was taken up: a parked run is resumed in its name
    queue: tuple[Command, ...] = ()
    asked: dict[str, Command] = field(default_factory=dict[str, Command])
    replies: dict[str, Reply] = field(default_factory=dict[str, Reply])
    starting: Command | None = None  # the rebuild or load that a new generation is started for
    awaiting_gone: bool = False  # the ranks of a failed generation have to be gone before
    error: tuple[Reason, ...] = ()
    previews: int = 0  # numbers given to previews so far
    inputs_digest: str | None = None
    inputs_generation: int = 0
    state: RankState = RankState.LOADING  # the last that all ranks agreed on (SE-11)
    state_epoch: int = 0
    control: str = "full"  # attach: `disabled: WHY` once control was given up

    @property
    def running(self) -> bool:
        """Whether steps go on, for all that is known here."""
        return self.target is not None and not self.parked

    @property
    def over(self) -> bool:
        """Whether the session is closed: its coordinator may go."""
        return self.phase is Phase.CLOSED


CONFIG_FACT = "config"  # the resolved configuration as a rank tells it, after a build and after each change; where it
# has `settings`, `configs/REVISION.json` holds it


class Turn:
    """One step of the machine: changes are made to `state`, what the shell has to do gathers in `actions`."""

    def __init__(self, state: Coordinator) -> None:
        self.state = state
        self.actions: list[CoordinatorAction] = []

    def act(self, action: CoordinatorAction, /) -> None:
        """Have the shell do this after what was said before."""
        self.actions.append(action)

    def change(self, **changes: Any) -> None:
        """Replace fields of the coordinator."""
        self.state = replace(self.state, **changes)

    def mark(self, **changes: Any) -> None:
        """Replace fields of the command under way."""
        self.change(under=replace(self.under, **changes))

    def know(self, rank: int, **changes: Any) -> None:
        """Replace fields of what is known of a rank."""
        ranks = list(self.state.ranks)
        ranks[rank] = replace(ranks[rank], **changes)
        self.change(ranks=tuple(ranks))

    @property
    def under(self) -> UnderWay:
        """The command under way, where there is one."""
        assert self.state.under is not None
        return self.state.under

    def tell(self, message: ToRank, /) -> None:
        """Write to every rank that takes part."""
        for known in self.state.ranks:
            if not (known.gone or known.leaving):
                self.act(Tell(known.rank, message))

    def set_timer(self, timer: str, bound: str | None) -> None:
        """Set a timer by the bound's name, or clear it."""
        self.act(SetTimer(timer, None if bound is None else self.state.bounds[bound]))

    def record(self, what: str, /, *, durable: bool = False, **facts: Any) -> None:
        """Have a line written to the journal; what is None is left out."""
        self.act(Record(what, {name: value for name, value in facts.items() if value is not None}, durable))

    def settle(self, command: Command, result: Result, *, reasons: tuple[Reason, ...] = (), **more: Any) -> None:
        """Give a command its result, for good."""
        self.settle_as(
            Reply(
                command_id=command.id,
                kind=command.kind,
                result=result,
                generation=self.state.generation,
                epoch=self.state.epoch,
                reasons=reasons,
                **more,
            )
        )

    def settle_as(self, reply: Reply, /) -> None:
        """Give a command this result, for good: it is in the journal before anybody is told.

        The last `REMEMBERED` are held, to answer the same id again; older ones the ledger answers from the journal, and
        never asks again. A configuration that is kept by its revision is left out.
        """
        if "settings" in reply.facts.get(CONFIG_FACT, ()):
            reply = replace(reply, facts={name: fact for name, fact in reply.facts.items() if name != CONFIG_FACT})
        self.record(
            "result",
            durable=True,
            id=reply.command_id,
            kind=reply.kind.value,
            result=reply.result.value,
            step=reply.step,
            reasons=[f"{reason.rank}: {reason.code}: {reason.words}" for reason in reply.reasons] or None,
            notes=list(reply.notes) or None,
        )
        replies = {**self.state.replies, reply.command_id: reply}
        if len(replies) > REMEMBERED:
            oldest = next(iter(replies))
            del replies[oldest]
            self.change(asked={name: one for name, one in self.state.asked.items() if name != oldest})
        self.change(replies=replies)
        self.act(Settle(reply))


def ours(code: str, words: str, /) -> tuple[Reason, ...]:
    """Return a reason of the coordinator's own."""
    return (Reason(COORDINATOR, code, words),)
