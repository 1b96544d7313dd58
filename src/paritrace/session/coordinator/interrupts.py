"""Signals to a coordinator: the first one closes the session, a second SIGINT or SIGTERM ends its ranks (SE-18)."""

import signal
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from paritrace.session.commands import Command, Kind
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.generations import Generations

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def closing_on_signals(generations: Generations, /) -> Generator["Interrupts"]:
    """Take SIGINT, SIGTERM and SIGHUP for a wish to close, while the block runs; on the main thread."""
    interrupts = Interrupts(generations)
    before = {number: signal.signal(number, interrupts) for number in SIGNALS}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Interrupts:
    """The handler runs between two instructions of the main thread, which may hold a lock: it takes none."""

    def __init__(self, generations: Generations) -> None:
        self._generations = generations
        self._received = ""
        self._asked = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self._received and number != signal.SIGHUP:  # a terminal that goes sends it more than once
            self._generations.kill()
        self._received = signal.Signals(number).name

    def look(self, desk: Desk) -> None:
        """Ask the session to close, once, where a signal has come; the main thread looks once a second at least."""
        if self._received and not self._asked:
            self._asked = True
            desk.ask_ourselves(Command(f"{self._received}-{uuid.uuid4()}", Kind.CLOSE))
