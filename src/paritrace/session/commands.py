"""A command of a session: what is asked, what it is fenced by, and what became of it (SE-4, SE-7)."""

from enum import StrEnum
from typing import Any

from msgspec import Struct, field

Body = dict[str, Any]
"""A JSON object; its keys are listed where its kind is read, and unknown ones are refused there."""
MAX_LINES = 500  # of a report in an answer; the rest is counted (SE-22)


class Kind(StrEnum):
    """What can be asked of a session."""

    RUN = "run"  # {"steps", "schedule"?, "autosave"?, "preview_every"?, "preview_options"?}
    STOP = "stop"  # {}
    CONFIGURE = "configure"  # {"values"?, "inputs"?}
    SAVE = "save"  # {"name"?}: a name within the session's own folder, never a path
    LOAD = "load"  # {"checkpoint", "rebuild"?}: a name, or "latest"
    INPUTS = "inputs"  # {"reference"}
    PREVIEW = "preview"  # {"options"?, "rank"?}: of every rank that offers one, or of that rank alone
    CAPTURE = "capture"  # {"steps", "level", "name"?}: the next steps, into the session's captures
    REBUILD = "rebuild"  # {"values"?, "inputs"?}
    CLOSE = "close"  # {"now"?}


LIVE = frozenset({Kind.STOP, Kind.CONFIGURE, Kind.SAVE, Kind.INPUTS, Kind.PREVIEW, Kind.CAPTURE})
"""What may be asked while steps go on: it is done at a step that all ranks agree on (SE-6)."""
QUIESCENT = frozenset({Kind.RUN, Kind.LOAD, Kind.REBUILD})
"""What is admitted only where no step is pending (SE-5)."""


class Fences(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What whoever asks believes of the session; where it is otherwise, the command is cancelled (SE-4)."""

    generation: int | None = None
    step: int | None = None
    config_revision: int | None = None


class Command(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A request. `id` is the caller's: the same one again returns the first result (SE-7)."""

    id: str
    kind: Kind
    body: Body = field(default_factory=dict[str, Any])
    fences: Fences = Fences()
    timeout_seconds: float | None = None  # the caller's own patience, on top of which there is slack (SE-21)


class Result(StrEnum):
    """What became of a command."""

    APPLIED = "applied"
    REFUSED = "refused"  # nothing changed anywhere; all reasons of all ranks
    CANCELLED = "cancelled"  # a fence, a withdrawal, or an end of the generation
    FAILED = "failed"  # state changed, the session is in Error
    UNKNOWN = "unknown"  # not answered in time: ask again by its id


class Reason(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One reason of one rank; of the coordinator where the rank is below 0."""

    rank: int
    code: str
    words: str


class Reply(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The result of a command. `step`: the agreed step at which it acted; `facts`: what its kind tells of."""

    command_id: str
    kind: Kind
    result: Result
    generation: int
    epoch: int
    step: int | None = None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Body = field(default_factory=dict[str, Any])


def bounded(lines: tuple[str, ...], /) -> tuple[str, ...]:
    """Return at most MAX_LINES lines and, in one more, the number of the rest (SE-22)."""
    if len(lines) <= MAX_LINES:
        return lines
    return (*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more")
