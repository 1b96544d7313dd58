"""The rule that says from a journal what a session had come to, and what was in flight (SE-15, SE-18)."""

from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert

from paritrace.session.commands import Command, Kind, Reply, Result
from paritrace.session.journal import CLOSED, OPENED, Journal, Line

Found = TypeVar("Found")
_OF_REPLY = frozenset({"kind", "result", "step", "epoch", "notes", "facts"})


class InFlight(Struct, frozen=True, forbid_unknown_fields=True):
    """A command that was taken up and whose result was never written. `last`: the last that is known of it."""

    id: str
    kind: Kind
    generation: int
    last: str


class Replayed(Struct, frozen=True):
    """What a journal says. `closed`: the last coordinator closed the session itself."""

    session_id: str | None = None
    generation: int = 0
    config_revision: int = 0
    step: int | None = None  # the last that all ranks are known to have stood at
    running_to: int | None = None  # the target of a run that had not ended
    inputs_digest: str | None = None  # the last inputs that were present on all ranks
    closed: bool = False
    in_flight: tuple[InFlight, ...] = ()
    commands: dict[str, Command] = {}
    replies: dict[str, Reply] = {}


def replayed(journal: Journal, /) -> Replayed:
    """Return what all lines come to; the same lines always give the same."""
    state = _State()
    for line in journal.lines:
        state.take(line)
    return state.result()


def recalled(journal: Journal, command_id: str, /) -> tuple[Command | None, Reply | None]:
    """Return a command by its id and its result; None for what the journal does not hold."""
    command, reply = None, None
    for line in journal.lines:
        if line.facts.get("id") != command_id:
            continue
        if line.what == "command":
            command = _converted(line.facts, Command)
        elif line.what == "result":
            reply = reply_of(line) or reply
    return command, reply


class _State:
    def __init__(self) -> None:
        self.session_id: str | None = None
        self.generation = 0
        self.config_revision = 0
        self.step: int | None = None
        self.running_to: int | None = None
        self.inputs_digest: str | None = None
        self.closed = False
        self.open: dict[str, InFlight] = {}
        self.commands: dict[str, Command] = {}
        self.replies: dict[str, Reply] = {}

    def take(self, line: Line) -> None:
        self.generation = max(self.generation, line.generation)
        facts = line.facts
        match line.what:
            case what if what == OPENED:
                self.session_id, self.closed = str(facts.get("session_id")), False
                self.running_to = None
            case what if what == CLOSED:
                self.closed = True
            case "command":
                self._command(line)
            case "result":
                self._result(line)
            case "vote" | "epoch":
                self._last(facts, f"{facts.get('round', line.what)} of generation {line.generation}")
            case "revision":
                self.config_revision = int(facts.get("revision", self.config_revision))
            case "generation":  # new ranks come up under the next one, which no other line tells
                self.config_revision = int(facts.get("config_revision", self.config_revision))
            case "run":
                self._run(facts)
            case "failure":
                self.running_to = None
            case _:
                pass
        self.inputs_digest = _inputs_digest(line) or self.inputs_digest
        if line.what in {"transition", "revision", "run", "checkpoint"} and isinstance(facts.get("step"), int):
            self.step = int(facts["step"])

    def _command(self, line: Line) -> None:
        command = _converted(line.facts, Command)
        if command is not None:
            self.commands[command.id] = command
            self.open[command.id] = InFlight(command.id, command.kind, line.generation, "taken up, no rank had voted")

    def _result(self, line: Line) -> None:
        reply = reply_of(line)
        if reply is not None and reply.result is not Result.UNKNOWN:
            self.replies[reply.command_id] = reply
            self.open.pop(reply.command_id, None)

    def _last(self, facts: dict[str, Any], words: str) -> None:
        found = self.open.get(str(facts.get("id")))
        if found is not None:
            self.open[found.id] = InFlight(found.id, found.kind, found.generation, words)

    def _run(self, facts: dict[str, Any]) -> None:
        ended = facts.get("event") in {"ended", "stopped"}
        target = facts.get("target")
        self.running_to = None if ended or not isinstance(target, int) else target

    def result(self) -> Replayed:
        return Replayed(
            session_id=self.session_id,
            generation=self.generation,
            config_revision=self.config_revision,
            step=self.step,
            running_to=self.running_to,
            inputs_digest=self.inputs_digest,
            closed=self.closed,
            in_flight=tuple(self.open.values()),
            commands=self.commands,
            replies=self.replies,
        )


def reply_of(line: Line, /) -> Reply | None:
    """Return the reply that a line `result` holds, None where it holds none."""
    facts = line.facts
    reasons = [_reason(str(words)) for words in facts.get("reasons", ())]
    told = {name: value for name, value in facts.items() if name in _OF_REPLY}
    return _converted(
        {"command_id": facts.get("id"), "generation": line.generation, "epoch": 0, "reasons": reasons} | told, Reply
    )


def _inputs_digest(line: Line) -> str | None:
    named = {"inputs": "digest", "generation": "inputs_digest"}.get(line.what)
    found = None if named is None else line.facts.get(named)
    return found if isinstance(found, str) else None


def _reason(words: str) -> dict[str, object]:
    """A reason as the journal spells it: `RANK: CODE: WORDS`."""
    rank, _, rest = words.partition(": ")
    code, _, said = rest.partition(": ")
    return {"rank": int(rank) if rank.lstrip("-").isdecimal() else -1, "code": code, "words": said}


def _converted(value: object, kind: type[Found]) -> Found | None:
    try:
        return convert(value, kind)
    except ValidationError:
        return None
