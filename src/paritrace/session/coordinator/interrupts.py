"""What closes a session from outside: a signal, or its directory's removal; a second SIGINT or SIGTERM ends its ranks
(SE-18)."""

import os
import signal
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from paritrace.session.commands import Command, Kind
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.generations import Generations

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def closing_on_interrupts(generations: Generations, directory: Path, /) -> Generator["Interrupts"]:
    """Take SIGINT, SIGTERM and SIGHUP for a wish to close, while the block runs; on the main thread."""
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    interrupts = Interrupts(generations, held)
    before = {number: signal.signal(number, interrupts) for number in SIGNALS}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(held)


class Interrupts:
    """The handler runs between two instructions of the main thread, which may hold a lock: it takes none.

    `directory` is an open descriptor of the session's: nobody can reach a session whose directory has been removed, and
    its ranks would stay for ever. One that was moved is still there.
    """

    def __init__(self, generations: Generations, directory: int) -> None:
        self._generations = generations
        self._directory = directory
        self._received = ""
        self._asked = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self._received and number != signal.SIGHUP:  # a terminal that goes sends it more than once
            self._generations.kill()
        self._received = signal.Signals(number).name

    def look(self, desk: Desk) -> None:
        """Ask the session to close, once, where something has come; the main thread looks once a second at least."""
        if not self._received and os.fstat(self._directory).st_nlink == 0:
            self._received = "directory_removed"
        if self._received and not self._asked:
            self._asked = True
            desk.ask_ourselves(Command(f"{self._received}-{uuid.uuid4()}", Kind.CLOSE))
