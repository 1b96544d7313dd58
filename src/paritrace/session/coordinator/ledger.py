"""Every command by its id, with its result or whoever waits for it: one id has one content and one result (SE-7)."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future

from paritrace.errors import RequestError
from paritrace.session.commands import Command, Reply, Result

Waiting = Future[Reply]


class Ledger:
    """Kept by any thread; begins with what the journal tells of earlier coordinators."""

    def __init__(self, commands: Mapping[str, Command], replies: Mapping[str, Reply]) -> None:
        self._commands = dict(commands)
        self._waiting: dict[str, Waiting] = {}
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
            fresh = known is None
            self._commands[command.id] = command
            return self._waiting.setdefault(command.id, Future()), fresh

    def find(self, command_id: str) -> Waiting | None:
        """Return what the result of a command is told to, None where no such command was asked."""
        with self._lock:
            if command_id not in self._commands:
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
        waiting.set_result(reply)

    def end(self, reply_for: "Mapping[str, Reply]") -> None:
        """Tell all who still wait."""
        for reply in reply_for.values():
            self.settle(reply)

    @property
    def unsettled(self) -> tuple[Command, ...]:
        """Commands without a result."""
        with self._lock:
            open_ids = [name for name, waiting in self._waiting.items() if not waiting.done()]
            return tuple(self._commands[name] for name in open_ids if name in self._commands)


def _same(known: Command, command: Command) -> bool:
    """Whether two requests ask the same; how long somebody waits is no part of it."""
    return (known.kind, known.body, known.fences) == (command.kind, command.body, command.fences)
