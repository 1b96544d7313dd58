"""Which levels each step is recorded at, and in what order they are given up: a rule without effects (CA-2, CA-36)."""

from __future__ import annotations

from paritrace.capture.settings import CaptureSettings
from paritrace.evidence.calls import Level

Levels = frozenset[Level]
DIGEST: Levels = frozenset({Level.DIGEST})
WINDOW: Levels = frozenset({Level.DIGEST, Level.MODULE, Level.OP})
_CEILINGS = (Level.OP, Level.CALLSITE, Level.MODULE, Level.DIGEST)  # each lower than the one before
_ALLOWED: dict[Level, Levels] = {
    Level.OP: WINDOW | {Level.CALLSITE},
    Level.CALLSITE: frozenset({Level.DIGEST, Level.MODULE, Level.CALLSITE}),
    Level.MODULE: frozenset({Level.DIGEST, Level.MODULE}),
    Level.DIGEST: DIGEST,
}


def is_window(step: int) -> bool:
    """Whether level `op` has a window at this step: 0, 1, 2, 4, 8 … (CA-36)."""
    return step & (step - 1) == 0


class LevelPlan:
    """What is asked for, less what had to be given up.

    `written` are the levels whose rows reach the journal at once; `observed` those that hooks are needed for: a black
    box observes level `module` at every step.
    """

    def __init__(self, settings: CaptureSettings, *, windows: bool = False) -> None:
        self._settings = settings
        self._windows = windows and settings.black_box
        self._asked: set[int] = set()
        self.ceiling = Level.OP

    def written(self, step: int) -> Levels:
        """Levels whose rows are written at this step."""
        asked = self._settings.levels if self._settings.covers(step) else DIGEST
        return (asked | WINDOW if self.has_window(step) else asked) & _ALLOWED[self.ceiling]

    def observed(self, step: int) -> Levels:
        """Levels whose calls are observed at this step."""
        written = self.written(step)
        return written | {Level.MODULE} if self.is_kept(step) else written

    def is_kept(self, step: int) -> bool:
        """Whether this step's calls of level `module` go into the black box: those of other steps are written."""
        return self._settings.black_box and self.ceiling is not Level.DIGEST and self.written(step) == DIGEST

    def has_window(self, step: int) -> bool:
        """Whether the black box records level `op` here, whatever was asked for beside it."""
        return self._windows and (is_window(step) or step in self._asked)

    def ask_for_window(self, step: int) -> None:
        """Open a window at a step to come."""
        self._asked.add(step)

    def lower(self, step: int) -> Level | None:
        """Give up the highest level observed at this step, for good; the level that is left, or None at `digest`."""
        observed = self.observed(step)
        given_up = highest(observed)
        if given_up is Level.DIGEST:
            return None
        self.ceiling = highest(observed - {given_up})
        return self.ceiling


def highest(levels: Levels) -> Level:
    """The level among these that costs most."""
    return next((level for level in _CEILINGS if level in levels), Level.DIGEST)
