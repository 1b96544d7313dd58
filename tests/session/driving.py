"""The machine of the coordinator with ranks that are written by hand: each answers what the test says."""

from typing import Any

from paritrace.session import coordinator_machine
from paritrace.session.bounds import bounds_with
from paritrace.session.commands import Command, Fences, Kind, Reason, Reply
from paritrace.session.coordinator_events import (
    Asked,
    CoordinatorAction,
    CoordinatorEvent,
    Elapsed,
    Gone,
    Heard,
    Opened,
    Record,
    SetTimer,
    Settle,
    Tell,
)
from paritrace.session.messages import Answer, Beat, Ended, FromRank, Joined, Round, RoundName, Verdict
from paritrace.session.states import RankState


class Driven:
    """A coordinator and what it has asked its shell to do so far."""

    def __init__(self, world_size: int = 2, *, stops_ranks: bool = True, **bounds: float) -> None:
        self.world_size = world_size
        self.state = coordinator_machine.began(
            world_size=world_size, generation=3, bounds=bounds_with(bounds), stops_ranks=stops_ranks
        )
        self.actions: list[CoordinatorAction] = []
        self.do(Opened())

    def do(self, event: CoordinatorEvent) -> tuple[CoordinatorAction, ...]:
        self.state, actions = coordinator_machine.step(self.state, event)
        self.actions += actions
        return actions

    def hear(self, message: FromRank) -> tuple[CoordinatorAction, ...]:
        return self.do(Heard(message.rank, message))

    def joined(self, rank: int, generation: int = 3) -> Joined:
        return Joined(generation, rank, self.world_size, "job", "token", 1, "host", "boot", 1)

    def built(self, **facts: Any) -> "Driven":
        for rank in range(self.world_size):
            self.hear(self.joined(rank))
            self.end(rank, step=0, facts=facts)
        return self

    def end(self, rank: int, step: int, state: RankState = RankState.IDLE, **more: Any) -> None:
        revision = self.state.config_revision
        self.hear(Ended(self.state.generation, rank, self.state.epoch, state, step, revision, **more))

    def ask(self, command_id: str, kind: Kind, fences: Fences | None = None, **body: Any) -> None:
        self.do(Asked(Command(command_id, kind, body, fences or Fences())))

    def answer(self, rank: int, verdict: Verdict = Verdict.YES, **more: Any) -> tuple[CoordinatorAction, ...]:
        """Answer the round under way; by itself as a rank would that is at the step the coordinator knows of."""
        under = self.state.under
        assert under is not None
        fields: dict[str, Any] = {
            "state": self.state.ranks[rank].state,
            "step": self.state.step,
            "config_revision": self.state.config_revision,
            **more,
        }
        if verdict is not Verdict.YES:
            fields.setdefault("reasons", (Reason(rank, "injected", f"rank {rank} does not"),))
        return self.hear(
            Answer(self.state.generation, under.command.id, under.epoch, under.name, rank, verdict, **fields)
        )

    def all_answer(self, *names: RoundName, **more: Any) -> None:
        """Have all ranks answer these rounds, each of which has to be the one under way."""
        for name in names:
            assert self.round is name
            for rank in range(self.world_size):
                self.answer(rank, **more)

    def beat(self, rank: int, state: RankState, **more: Any) -> tuple[CoordinatorAction, ...]:
        fields: dict[str, Any] = {"step": 0, "pending": 0, "config_revision": 0, "epoch": self.state.epoch, **more}
        return self.hear(Beat(generation=self.state.generation, rank=rank, state=state, **fields))

    def gone(self, rank: int) -> None:
        self.do(Gone(rank, "killed by signal 9"))

    def elapse(self, timer: str) -> tuple[CoordinatorAction, ...]:
        return self.do(Elapsed(timer))

    @property
    def round(self) -> RoundName | None:
        return None if self.state.under is None else self.state.under.name

    def reply(self, command_id: str) -> Reply:
        return next(
            a.reply for a in reversed(self.actions) if isinstance(a, Settle) and a.reply.command_id == command_id
        )

    def told(self, name: RoundName) -> list[Round]:
        """All rounds of this name that were sent, in their order."""
        messages = (action.message for action in self.actions if isinstance(action, Tell))
        return [message for message in messages if isinstance(message, Round) and message.name is name]

    def records(self, what: str) -> list[dict[str, Any]]:
        return [action.facts for action in self.actions if isinstance(action, Record) and action.what == what]

    def timers(self) -> dict[str, float]:
        """The timers that are set."""
        on: dict[str, float] = {}
        for action in self.actions:
            if isinstance(action, SetTimer):
                on.pop(action.timer, None)
                if action.seconds is not None:
                    on[action.timer] = action.seconds
        return on
