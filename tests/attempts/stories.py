"""Trajectories for tests, told as short lines: `tool argument = result`, `;` between calls of one turn."""

from paritrace.attempts.origins import Origin
from paritrace.attempts.trace_steps import Call, message_of, steps_of
from paritrace.attempts.traces import Trace


def trace(*turns: str, task: str = "t", attempt: str = "a", outcome: str = "") -> Trace:
    """`read a = text` is a call with its result, `read a` one without a recorded result, `say x` an answer."""
    calls = [call for turn, line in enumerate(turns) for call in _turn(turn, line)]
    return Trace(task_id=task, attempt_id=attempt, steps=steps_of(calls), origin=Origin("s"), outcome=outcome)


def _turn(turn: int, line: str) -> list[Call]:
    return [_call(part.strip(), turn) for part in line.split(";")]


def _call(text: str, turn: int) -> Call:
    asked, equals, result = text.partition(" = ")
    name, _, argument = asked.partition(" ")
    origin = Origin("s", pointer=f"/{turn}")
    if name == "say":
        return message_of(argument, turn=turn, origin=origin)
    key = "command" if name == "bash" else "x"
    return Call(
        name=name,
        arguments={key: argument} if argument else {},
        turn=turn,
        origin=origin,
        result=result,
        has_result=bool(equals),
    )
