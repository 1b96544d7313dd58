"""Reads a session's state inventory, step by step, from the few lines of its journal that hold it (CA-29, CP-28)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from paritrace.evidence.calls import JournalHeader, NotCaptured, State, StateNames, StepMark
from paritrace.evidence.codec import decode_line
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.runs.reading import Run
from paritrace.runs.views import SessionView

STARTS = (b'["s",', b'{"type":"state_names"', b'{"type":"not_captured"', b'{"type":"step"', b'{"type":"journal"')
TELLS_EMPTY_OPTIMIZERS = (1, 2)  # from this version of the journal on, an optimizer's state is written when it is met
Value = str | Gap[CaptureGap]
Key = tuple[str, str]
"""Group and name."""


@dataclass(slots=True)
class SessionStates:
    """The begin of each step and its first batch, as one session recorded them; numbers of steps are its own."""

    session: SessionView
    begins: dict[int, dict[Key, Value]] = field(default_factory=dict[int, dict[Key, Value]])
    batches: dict[int, dict[Key, Value]] = field(default_factory=dict[int, dict[Key, Value]])
    stepped: dict[int, int] = field(default_factory=dict[int, int])  # step -> optimizer steps made in it
    not_captured: tuple[str, ...] = ()
    tells_empty_optimizers: bool = False

    @property
    def first(self) -> int | None:
        """The first step whose begin was recorded."""
        return min(self.begins, default=None)

    def inventory(self, step: int) -> dict[Key, Value]:
        """What the step began with, and its first batch."""
        return self.begins.get(step, {}) | self.batches.get(step, {})

    def had_no_optimizer_state(self, step: int) -> bool:
        """Whether an optimizer stepped here and was seen to hold nothing before."""
        held = any(group == "optimizer_state" for group, _ in self.begins.get(step, {}))
        return self.tells_empty_optimizers and self.stepped.get(step, 0) > 0 and not held


def session_states(run: Run, session: SessionView) -> SessionStates:
    """Read one session; a line that cannot be read is left out, as everywhere."""
    found = SessionStates(session)
    names: dict[int, StateNames] = {}
    for line in _lines(run.journal_bytes(session.session_id)):
        _take(found, names, decode_line(line))
    return found


def _take(found: SessionStates, names: dict[int, StateNames], record: object) -> None:
    match record:
        case StateNames():
            names[record.id] = record
        case State() if record.names in names and record.moment in ("begin", "batch"):
            _take_state(found, names[record.names], record)
        case StepMark():
            found.stepped[record.step] = record.optimizer_steps
        case NotCaptured():
            found.not_captured = (*found.not_captured, *(n for n in record.names if n not in found.not_captured))
        case JournalHeader():
            found.tells_empty_optimizers = _version(record.version) >= TELLS_EMPTY_OPTIMIZERS
        case _:
            pass


def _take_state(found: SessionStates, names: StateNames, state: State) -> None:
    if state.moment == "batch" and state.microbatch:
        return
    into = found.begins if state.moment == "begin" else found.batches
    held = into.setdefault(state.step, {})
    for name, value in zip(names.names, state.values, strict=False):
        held[names.group, name] = value


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines that hold states; of the others nothing is parsed."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line.startswith(STARTS))
