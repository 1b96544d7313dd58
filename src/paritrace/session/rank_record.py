"""What the machine of a rank holds, and one turn of it: the rank as it becomes, and the actions on the way (SE-3)."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from paritrace.session.barrier import Standing
from paritrace.session.commands import LIVE, QUIESCENT, Kind
from paritrace.session.messages import Answer, RoundName
from paritrace.session.rank_events import RankAction, RunUntil
from paritrace.session.states import RankState, entered

ENDING = frozenset({RankState.ERROR, RankState.CLOSING})
_REMEMBERED_COMMANDS = 8  # late copies of their rounds are known by their id; a line never holds more than one command


class Under(Struct, frozen=True):
    """The command under way, or the last one, on this rank."""

    id: str
    kind: Kind
    answers: tuple[Answer, ...] = ()  # given so far: the same round again is answered the same
    doing: RoundName | None = None  # what the work thread has in hand for it
    reserved: int | None = None
    park_at: int | None = None
    voted: bool = False  # its barrier was delivered: the epoch is its own
    void: bool = False  # released or aborted: only a resumption may come

    def answer_to(self, name: RoundName, /) -> Answer | None:
        """Return what was answered to a round, None where it was not answered yet."""
        return next((answer for answer in self.answers if answer.name is name), None)


class Rank(Struct, frozen=True):
    """One rank. `target`: that of the run admitted and not over; parked within it, the rank is Idle and keeps it."""

    rank: int
    world_size: int
    generation: int
    capabilities: tuple[str, ...] = ()
    state: RankState = RankState.LOADING
    epoch: int = 0
    config_revision: int = 0
    step: int = 0  # the last that was told; while steps go on the gate knows better
    target: int | None = None
    run_epoch: int = 0  # what the run was admitted under, or resumed
    run_revision: int = 0
    drained_at: int | None = None  # its device queue was empty before this step began
    under: Under | None = None
    over: tuple[str, ...] = ()  # the commands before it

    @property
    def pending(self) -> int:
        """Steps of the run that are still to come."""
        return 0 if self.target is None else self.target - self.step

    @property
    def standing(self) -> Standing:
        """What this rank holds against a barrier: only an Idle one, parked or at rest, admits anything."""
        idle = self.state is RankState.IDLE
        return Standing(self.epoch, self.config_revision, self.pending, LIVE | QUIESCENT if idle else frozenset())


class Turn:
    """One step of the machine: changes are made to `rank`, what the shell has to do gathers in `actions`."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self.actions: list[RankAction] = []

    def act(self, action: RankAction, /) -> None:
        """Have the shell do this after what was said before."""
        self.actions.append(action)

    def change(self, **changes: Any) -> None:
        """Replace fields of the rank."""
        self.rank = replace(self.rank, **changes)

    def enter(self, state: RankState, /) -> None:
        """Go into a state. Raises InternalError (`illegal_transition`, Refused)."""
        self.change(state=entered(self.rank.state, state))

    def take_up(self, command_id: str, kind: Kind, /) -> None:
        """Make this the command under way; the one before it is over."""
        before = self.rank.under
        over = self.rank.over if before is None else (*self.rank.over, before.id)[-_REMEMBERED_COMMANDS:]
        self.change(under=Under(command_id, kind), over=over)

    def mark(self, **changes: Any) -> None:
        """Replace fields of the command under way."""
        assert self.rank.under is not None
        self.change(under=replace(self.rank.under, **changes))

    def run_to(self, target: int, /) -> None:
        """Go on stepping, under the epoch and the revision of now. Nothing has begun, so the device is drained."""
        rank = self.rank
        self.enter(RankState.RUNNING)
        self.change(target=target, run_epoch=rank.epoch, run_revision=rank.config_revision, drained_at=rank.step)
        self.act(RunUntil(target, rank.epoch, rank.config_revision))
