"""Sources and calls in words, for causes and sentences."""

from typing import assert_never

from paritrace.compare.agreement import Sides
from paritrace.compare.digests import Digests
from paritrace.compare.figure_rows import DigestDifference
from paritrace.compare.flows import FromCall, FromOrigin, FromUncompared, Source


def told_source(sides: Sides, source: Source, side: int) -> str:
    """Say where a value comes from, as side 0 (the baseline) or 1 recorded it."""
    match source:
        case FromCall(call, _):
            return told_call(sides, call, side=side)
        case FromOrigin(kind, name):
            return f"{kind.value.replace('_', ' ')} {name}".strip()
        case FromUncompared(record):
            return f"record {record}, which is not compared"
        case _:
            assert_never(source)


def told_call(sides: Sides, index: int, *, side: int = 0) -> str:
    """A call by its function and module."""
    mine = (sides.baseline, sides.candidate)[side]
    key = (mine.calls.values("function")[index], mine.calls.values("scope")[index])
    told = mine.told.get(key)
    if told is None:
        function, module = mine.recorded.functions[key[0]].name, mine.module_of(index)
        told = mine.told[key] = f"{function} in {module}" if module else function
    return told


def told_state(digests: Digests, found: DigestDifference) -> str:
    """A state that differs at the begin of a step, and since when if that is known."""
    told = f"{found.group.replace('_', ' ')} {found.name}"
    return f"{told}, which agreed at the begin of step {found.step - 1}" if digests.agreed_before(found) else told
