"""What threads of the HTTP API may do with a session: ask, withdraw, look; the machine is the main thread's (SE-2)."""

import queue
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError, RequestError
from paritrace.session.bounds import Bound
from paritrace.session.commands import Command
from paritrace.session.coordinator.configurations import with_scheduled
from paritrace.session.coordinator.lease import Lease
from paritrace.session.coordinator.ledger import Ledger, Waiting
from paritrace.session.coordinator.ring import Ring
from paritrace.session.coordinator.snapshot import Seen, scheduled_in, status_of
from paritrace.session.coordinator.trying import Tried
from paritrace.session.coordinator_events import Asked, CoordinatorEvent, Withdrawn
from paritrace.session.status import Status


class Trying(Protocol):
    def __call__(self, command: Command, /) -> Tried: ...


class Desk:
    """Made by the main thread, used by any. `wake` ends the main thread's wait."""

    def __init__(  # noqa: PLR0913  the parts of a session that are shared by threads
        self,
        directory: Path,
        *,
        ledger: Ledger,
        ring: Ring,
        bounds: tuple[Bound, ...],
        wake: Callable[[], None],
        trying: Trying,
        document: Callable[[int], bytes | None],
        clock: Clock = SYSTEM,
    ) -> None:
        self.directory = directory
        self.ring = ring
        self.bounds = bounds
        self.lease = Lease(clock)
        self.inbox: queue.SimpleQueue[CoordinatorEvent] = queue.SimpleQueue()
        self._ledger = ledger
        self.wake = wake
        self._trying = trying
        self._document = document
        self._clock = clock
        self._seen: Seen | None = None
        self._over = False

    def publish(self, seen: Seen) -> None:
        """Swap what `status` is made of: by the main thread, a reference and nothing more (SE-14)."""
        self._seen = seen

    def end(self) -> None:
        """Take no more commands: the session is over."""
        self._over = True

    def status(self) -> Status:
        """Return the session as it is now; it is made by whoever reads it, ages and elapsed times as of now.

        Raises:
            HostError: Refused, `session_over`: nothing was published yet.
        """
        seen = self._seen
        if seen is None:
            raise _over("has not begun")
        return status_of(seen, now_ns=self._clock.monotonic_ns())

    def ask(self, command: Command, *, lease: str | None = None) -> Waiting:
        """Ask a command, or find the first one of its id.

        Raises:
            RequestError: Refused, `lease_held`, `command_id_taken`.
            HostError: Refused, `session_over`.
        """
        self.lease.require(lease)
        if self._over:
            raise _over("is over")
        waiting, fresh = self._ledger.take(command)
        if fresh:
            self.tell(Asked(command))
        return waiting

    def ask_ourselves(self, command: Command) -> None:
        """Ask a command of our own, whoever holds the lease: to close at a signal."""
        self._ledger.take(command)
        self.tell(Asked(command))

    def tell(self, event: CoordinatorEvent) -> None:
        """Hand an event to the main thread; from any thread."""
        self.inbox.put(event)
        self.wake()

    def has_forgotten(self, command_id: str) -> bool:
        """Whether `recall` comes before `ask`, `find` and `withdraw` of this id."""
        return self._ledger.has_forgotten(command_id)

    def recall(self, command_id: str) -> None:
        """Take in again what was settled long ago, from the journal; on a thread that nobody waits for.

        Raises:
            RequestError: Refused, `command_forgotten`.
        """
        self._ledger.recall(command_id)

    def find(self, command_id: str) -> Waiting:
        """Return what the result of a command is told to.

        Raises:
            RequestError: Refused, `no_such_command`.
        """
        waiting = self._ledger.find(command_id)
        if waiting is None:
            raise RequestError(
                f"no command {command_id[:140]} was asked of this session",
                code="no_such_command",
                fix="`paritrace session journal` lists all of them",
            )
        return waiting

    def withdraw(self, command_id: str, *, lease: str | None = None) -> Waiting:
        """Say that whoever asked has given up. Raises as `find`, and `lease_held`."""
        self.lease.require(lease)
        waiting = self.find(command_id)
        if not waiting.done():
            self.tell(Withdrawn(command_id))
        return waiting

    def try_out(self, command: Command) -> Tried:
        """Return what would become of a command now; nothing is asked."""
        return self._trying(command)

    def config(self, revision: int | None) -> bytes:
        """Return the document of a configuration's revision.

        Without a number it is the present one, with the values that the schedule of a run has put in force (SE-26).

        Raises:
            RequestError: Refused, `no_such_revision`.
        """
        number = self.status().config_revision if revision is None else revision
        data = self._document(number)
        if data is None:
            raise RequestError(
                f"this session keeps no configuration of revision {number}",
                code="no_such_revision",
                fix="`paritrace session status` shows the present revision; a workload without fields keeps none",
            )
        scheduled = {} if revision is not None or self._seen is None else scheduled_in(self._seen)
        return data if not scheduled else with_scheduled(data, scheduled)


def _over(words: str) -> HostError:
    return HostError(
        f"the session {words}",
        code="session_over",
        fix="`paritrace session start` in the same directory goes on; its journal has what happened",
    )
