"""A desk behind its HTTP API, and a thread in the main thread's place that does what the test says."""

import threading
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from paritrace.session.bounds import BOUNDS, bounds_with
from paritrace.session.commands import Command, Reply, Result
from paritrace.session.coordinator.configurations import Configurations
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.http.application import application
from paritrace.session.coordinator.ledger import Ledger
from paritrace.session.coordinator.ring import Ring
from paritrace.session.coordinator.snapshot import Seen
from paritrace.session.coordinator.trying import tried
from paritrace.session.coordinator_events import Asked, Opened, Withdrawn
from paritrace.session.coordinator_machine import began, step

TOKEN = "the-right-token"
ORIGIN = "http://127.0.0.1:8124"


class Room:
    """The desk, a machine whose ranks load for ever, and how many commands have come."""

    def __init__(self, directory: Path) -> None:
        self.machine, _ = step(began(world_size=2, generation=3, bounds=bounds_with({})), Opened())
        self.ledger = Ledger({}, {}, recall=lambda _: (None, None))
        self.ring = Ring()
        self.desk = Desk(
            directory,
            ledger=self.ledger,
            ring=self.ring,
            bounds=BOUNDS,
            wake=lambda: None,
            trying=lambda command: tried(self.machine, command),
            document=Configurations(directory, {}).document,
        )
        self.desk.publish(Seen("s", "local", self.machine, {0: 0}))
        self.asked: list[Command] = []
        self.withdrawn: list[str] = []
        self.result = Result.APPLIED
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self.desk.inbox.put(Opened())  # which no request ever puts there
        self._thread.join(30)

    def _serve(self) -> None:
        while True:
            match self.desk.inbox.get():
                case Asked(command):
                    self.asked.append(command)
                    if command.id != "silent":
                        self.ledger.settle(Reply(command.id, command.kind, self.result, 3, 1, step=7))
                case Withdrawn(command_id):
                    self.withdrawn.append(command_id)
                case _:
                    return


@pytest.fixture
def room(tmp_path: Path) -> Generator[Room]:
    made = Room(tmp_path)
    yield made
    made.end()


Asking = Callable[..., TestClient]


@pytest.fixture
def client(room: Room) -> TestClient:
    """Shows the token as programs do."""
    app = application(room.desk, token=TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return TestClient(app, base_url=ORIGIN, headers=headers, raise_server_exceptions=False)
