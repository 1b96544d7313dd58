"""Every command by its id, with its result or whoever waits for it: one id has one content and one result (SE-7)."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from paritrace.errors import RequestError
from paritrace.session.commands import Command, Reply, Result

Waiting = Future[Reply]


REMEMBERED_REPLIES = 1000  # some 4 kB each: the last minutes of a program that asks without a pause

Recall = Callable[[str], tuple[Command | None, Reply | None]]
"""What the journal has of a command by its id."""


class Ledger:
    """Kept by any thread; begins with what the journal tells of earlier coordinators.

    Of what was settled before the last `REMEMBERED_REPLIES` only the ids are held: the journal has the rest (ADR 0073).
    """

    def __init__(self, commands: Mapping[str, Command], replies: Mapping[str, Reply], *, recall: Recall) -> None:
        self._commands = dict(commands)
        self._waiting: dict[str, Waiting] = {}
        self._settled: deque[str] = deque()
        self._forgotten: set[str] = set()
        self._recall = recall
        self._lock = threading.Lock()
        for reply in replies.values():
            self.settle(reply)

    def take(self, command: Command) -> tuple[Waiting, bool]:
        """Return what a command's result will be told to, and whether it is new: only then it has to be asked.

        Raises:
            RequestError: Refused, `command_id_taken`: the id was used with another content.
        """
        with self._lock:
            known = self._commands.get(command.id)
            if known is not None and not _same(known, command):
                raise RequestError(
                    f"command {command.id} was asked before as {known.kind.value} with another content",
                    code="command_id_taken",
                    fix="give every command an id of its own; the same id asks again for the first result",
                )
            fresh = known is None and command.id not in self._waiting  # one that was cancelled while it waited is known
            self._commands[command.id] = command  # by its result alone
            return self._waiting.setdefault(command.id, Future()), fresh

    def find(self, command_id: str) -> Waiting | None:
        """Return what the result of a command is told to, None where no such command was asked."""
        with self._lock:
            if command_id not in self._commands and command_id not in self._waiting:
                return None
            return self._waiting.setdefault(command_id, Future())

    def settle(self, reply: Reply) -> None:
        """Tell whoever waits; after `unknown` the result itself may still come, and is what is told from then on."""
        with self._lock:
            waiting = self._waiting.setdefault(reply.command_id, Future())
            if waiting.done():
                return
            if reply.result is Result.UNKNOWN:
                del self._waiting[reply.command_id]
            else:
                self._remember(reply.command_id)
        waiting.set_result(reply)

    def has_forgotten(self, command_id: str) -> bool:
        """Whether a command was settled so long ago that the journal alone has its result."""
        with self._lock:
            return command_id in self._forgotten

    def recall(self, command_id: str) -> None:
        """Take a forgotten command in again. The journal is read through: not for a thread that others wait for.

        Raises:
            RequestError: Refused, `command_forgotten`: the journal has no result of it.
        """
        command, reply = self._recall(command_id)
        if reply is None:
            raise RequestError(
                f"command {command_id[:140]} was asked long ago, and the journal does not hold its result",
                code="command_forgotten",
                fix="`paritrace session status` shows where the session stands; ask under a new id",
            )
        with self._lock:
            self._forgotten.discard(command_id)
            if command is not None:
                self._commands[command_id] = command
        self.settle(reply)

    def _remember(self, command_id: str) -> None:
        """The lock is held."""
        self._settled.append(command_id)
        while len(self._settled) > REMEMBERED_REPLIES:
            oldest = self._settled.popleft()
            self._commands.pop(oldest, None)
            self._waiting.pop(oldest, None)
            self._forgotten.add(oldest)

    @property
    def unsettled(self) -> tuple[Command, ...]:
        """Commands without a result."""
        with self._lock:
            open_ids = [name for name, waiting in self._waiting.items() if not waiting.done()]
            return tuple(self._commands[name] for name in open_ids if name in self._commands)


def _same(known: Command, command: Command) -> bool:
    """Whether two requests ask the same; how long somebody waits is no part of it."""
    return (known.kind, known.body, known.fences) == (command.kind, command.body, command.fences)
