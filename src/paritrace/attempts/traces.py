"""Records of one agent's trajectory: its steps in order, with digests of what it asked and what it got (AT-23)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.attempts.origins import Origin


class StepKind(StrEnum):
    """What an agent did in a step."""

    CALL = "call"  # a tool was called
    MESSAGE = "message"  # it spoke and called nothing: an answer


class Argument(Struct, frozen=True):
    """One argument of a call; `text` is the beginning of its value, for people, `sha256` is of the whole value."""

    name: str
    sha256: str
    text: str


class Step(Struct, frozen=True):
    """One step.

    `number` counts from 1. Steps of one `turn` were asked for by one answer of the model, before any of their results.
    `name` is the tool; `program` is the first program of a command line, where the tool is a shell. `result_sha256` is
    None where the result was not recorded. `said_sha256` is of the text beside the calls, on the first step of a turn.
    """

    number: int
    turn: int
    kind: StepKind
    name: str
    program: str
    arguments: tuple[Argument, ...]
    arguments_sha256: str
    result_sha256: str | None
    said_sha256: str | None
    origin: Origin


class Trace(Struct, frozen=True):
    """The trajectory of one attempt; `outcome` is its verdict in a word, "" where there is none.

    `inherited`: steps that were copied from an earlier trajectory and are not this attempt's (AT-7).
    """

    task_id: str
    attempt_id: str
    steps: tuple[Step, ...]
    origin: Origin
    outcome: str = ""
    inherited: int = 0
