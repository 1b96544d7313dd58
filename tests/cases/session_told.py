"""A session's coordinator without processes: the ranks say what a case has them say."""

from typing import Any

from paritrace.session import coordinator_machine
from paritrace.session.bounds import bounds_with
from paritrace.session.commands import Command, Kind, Reply
from paritrace.session.coordinator_events import (
    Asked,
    CoordinatorAction,
    CoordinatorEvent,
    FailStop,
    Heard,
    Opened,
    Record,
    Settle,
    Tell,
)
from paritrace.session.messages import Answer, Beat, Ended, Joined, Round, RoundName, Verdict
from paritrace.session.states import RankState


class Told:
    """A session of some ranks, opened; `ready` has them join and build."""

    def __init__(self, *, world_size: int, generation: int = 1) -> None:
        self.world_size, self.generation = world_size, generation
        self.state = coordinator_machine.began(
            world_size=world_size, generation=generation, bounds=bounds_with({}), stops_ranks=True
        )
        self.actions: list[CoordinatorAction] = []
        self.event(Opened())

    def event(self, event: CoordinatorEvent) -> None:
        self.state, actions = coordinator_machine.step(self.state, event)
        self.actions += actions

    def joins(self, rank: int, *, generation: int | None = None) -> None:
        generation = self.generation if generation is None else generation
        self.event(
            Heard(rank, Joined(generation, rank, self.world_size, "job", "token", 100 + rank, "host", "boot", 1))
        )

    def builds(self, rank: int) -> None:
        self.event(Heard(rank, Ended(self.generation, rank, self.state.epoch, RankState.IDLE, 0, 0)))

    def ready(self) -> "Told":
        for rank in range(self.world_size):
            self.joins(rank)
        for rank in range(self.world_size):
            self.builds(rank)
        return self

    def asks(self, kind: Kind, **body: Any) -> None:
        self.event(Asked(Command("c", kind, body)))

    def rounds(self) -> list[RoundName]:
        """Rounds that rank 0 was told, in their order."""
        told = [one.message for one in self.actions if isinstance(one, Tell) and one.rank == 0]
        return [one.name for one in told if isinstance(one, Round)]

    def answers(self, rank: int, name: RoundName, **given: Any) -> None:
        """A rank answers the present round."""
        under = self.state.under
        assert under is not None
        assert under.name is name
        whole: dict[str, Any] = {"verdict": Verdict.YES, "state": self.state.ranks[rank].state, "step": 0}
        whole |= {"config_revision": 0, **given}
        self.event(Heard(rank, Answer(self.generation, "c", under.epoch, name, rank, **whole)))

    def beats(self, rank: int, **given: Any) -> None:
        whole: dict[str, Any] = {
            "epoch": 0,
            "state": RankState.RUNNING,
            "step": 12,
            "pending": 88,
            "config_revision": 0,
        }
        whole |= given
        self.event(Heard(rank, Beat(self.generation, rank, **whole)))

    @property
    def reply(self) -> Reply | None:
        """What became of the command that was asked."""
        found = [one.reply for one in self.actions if isinstance(one, Settle)]
        return found[-1] if found else None

    def records(self, what: str) -> list[dict[str, Any]]:
        return [one.facts for one in self.actions if isinstance(one, Record) and one.what == what]

    @property
    def stopped(self) -> FailStop | None:
        return next((one for one in self.actions if isinstance(one, FailStop)), None)
