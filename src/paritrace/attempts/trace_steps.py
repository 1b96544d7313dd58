"""Steps out of what other programs recorded of a call: names, programs, digests; pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

import msgspec
from msgspec import Struct

from paritrace.attempts.origins import Origin
from paritrace.attempts.traces import Argument, Step, StepKind

SHELLS = frozenset(
    {
        "bash",
        "bash_session",
        "bash_tool",
        "container.exec",
        "exec",
        "exec_command",
        "execute_bash",
        "execute_command",
        "local_shell",
        "run_command",
        "run_in_terminal",
        "run_shell_command",
        "sh",
        "shell",
        "shell_command",
        "terminal",
    }
)
"""Tools whose one tool is a whole toolbox: what they run is a part of their name."""
COMMANDS = ("command", "cmd", "commands", "keystrokes", "script", "input")
MESSAGE = "message"
MOST_TEXT = 2000  # characters of an argument that are kept for people

_LEADING = re.compile(r"\s*(?:\(|sudo\s|time\s|env\s|cd\s+[^&;|]*(?:&&|;)|[A-Za-z_]\w*=\S*\s|set\s+-\S+\s*(?:&&|;|\n))")
_WORD = re.compile(r"\s*([^\s;&|<>()]+)")


class Call(Struct, frozen=True):
    """A call as its source has it; `has_result` is False where no result was recorded."""

    name: str
    arguments: Any
    turn: int
    origin: Origin
    result: Any = None
    has_result: bool = False
    said: str | None = None
    kind: StepKind = StepKind.CALL


def digest(value: object) -> str:
    """Returns the SHA-256 of a plain value, the same for equal values whatever the order of their keys."""
    return sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def steps_of(calls: Iterable[Call]) -> tuple[Step, ...]:
    """Returns calls as numbered steps."""
    return tuple(_step(call, number) for number, call in enumerate(calls, 1))


def message_of(text: str, *, turn: int, origin: Origin) -> Call:
    """Returns an answer without a call."""
    return Call(name=MESSAGE, arguments={"text": text.strip()}, turn=turn, origin=origin, kind=StepKind.MESSAGE)


def _step(call: Call, number: int) -> Step:
    arguments = _parsed(call.arguments)
    return Step(
        number=number,
        turn=call.turn,
        kind=call.kind,
        name=call.name,
        program=program_of(call.name, arguments),
        arguments=tuple(_arguments(arguments)),
        arguments_sha256=digest(arguments),
        result_sha256=digest(call.result) if call.has_result else None,
        said_sha256=None if call.said is None or not call.said.strip() else digest(call.said.strip()),
        origin=call.origin,
    )


def _parsed(arguments: Any) -> Any:
    """Returns arguments as an object: some sources write them as the JSON text that the model wrote."""
    if isinstance(arguments, str) and arguments.lstrip()[:1] == "{":
        try:
            return msgspec.json.decode(arguments)
        except (msgspec.DecodeError, RecursionError):
            return arguments
    return arguments


def _arguments(arguments: Any) -> Iterable[Argument]:
    if arguments is None:
        return
    named = cast("Mapping[str, Any]", arguments) if isinstance(arguments, Mapping) else {"": arguments}
    for name in sorted(named):
        value = named[name]
        text = value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
        yield Argument(name=name, sha256=digest(value), text=text[:MOST_TEXT])


def program_of(tool: str, arguments: Any) -> str:
    """Returns the first program of a shell tool's command line, "" where the tool is no shell or it cannot be told."""
    if tool.lower() not in SHELLS:
        return ""
    command = _command(arguments)
    if command is None:
        return ""
    while (leading := _LEADING.match(command)) is not None:
        command = command[leading.end() :]
    word = _WORD.match(command)
    return "" if word is None else word.group(1).rsplit("/", 1)[-1]


def _command(arguments: Any) -> str | None:
    found: Any = arguments
    if isinstance(arguments, Mapping):
        named = cast("Mapping[str, Any]", arguments)
        found = next((named[name] for name in COMMANDS if name in named), None)
    if isinstance(found, list | tuple):
        words = [str(word) for word in cast("Sequence[Any]", found)]
        inner = len(words) > 2 and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh")
        return words[2] if inner else " ".join(words)
    return found if isinstance(found, str) else None
