"""Has a side captured again: its program started anew, or its session put at its checkpoint (CP-15, SE-15)."""

from pathlib import Path

from paritrace.automation.narrow_captures import Capture
from paritrace.automation.narrow_residents import captured_from_checkpoint, require_idle
from paritrace.automation.narrow_sides import AskedSide, Resident
from paritrace.automation.rerun import Rerun, require_same_sources, rerun
from paritrace.files import Files
from paritrace.runs.request import require_whole


def require_ready(side: AskedSide, *, files: Files) -> None:
    """Refuse a side that cannot be captured again.

    Raises:
        RequestError: Refused: `arguments_unknown`, `launcher_unknown`, `session_busy`.
        EvidenceError: Refused: `source_changed`.
        HostError: Refused: `coordinator_gone`.
    """
    if isinstance(side.again, Resident):
        require_idle(side.again)
        return
    require_whole(side.again)
    require_same_sources(side.again, files=files)


def captured_again(
    wanted: Capture, *, output: Path, between: tuple[int, int | None] | None, deadline_seconds: float
) -> Rerun:
    """Make one run of a round at `output`. Raises as `rerun` and `captured_from_checkpoint` do."""
    again, options = wanted.side.again, wanted.options
    if isinstance(again, Resident):
        return captured_from_checkpoint(again, options, between, output=output, deadline_seconds=deadline_seconds)
    return rerun(again, output=output, options=options.arguments, deadline_seconds=deadline_seconds)
