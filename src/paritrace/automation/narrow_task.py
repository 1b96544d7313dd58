"""The record of one narrowing under way: its sides, what is asked, its folder (CP-15)."""

from pathlib import Path

from msgspec import Struct

from paritrace import __version__
from paritrace.automation.narrow_folder import Folder
from paritrace.automation.narrow_records import Asked
from paritrace.automation.narrow_sides import AskedSide, asked_side
from paritrace.automation.rerun import DEADLINE_SECONDS
from paritrace.files import LOCAL, Files

BASELINE, CANDIDATE = "baseline", "candidate"


class Narrowing(Struct, frozen=True):
    """One narrowing: its sides, what is asked, its folder."""

    baseline: AskedSide
    candidate: AskedSide
    asked: Asked
    folder: Folder
    made_by: str
    deadline_seconds: float = DEADLINE_SECONDS
    files: Files = LOCAL


class Wanted(Struct, frozen=True, kw_only=True):
    """How to look. `draws` None: as many as the baseline has beside it; texts are "" where nothing is wanted."""

    between: tuple[int, int | None] | None = None
    draws: int | None = None
    upcast: str = ""
    launcher: str = ""
    compiler: bool = False
    deadline_seconds: float = DEADLINE_SECONDS


def narrowing_of(baseline: Path, candidate: Path, *, folder: Path, wanted: Wanted) -> Narrowing:
    """Read both sides and put together what is asked; nothing is written. Raises as `asked_side` does."""
    one = asked_side(baseline, name=BASELINE, launcher=wanted.launcher)
    other = asked_side(candidate, name=CANDIDATE, launcher=wanted.launcher)
    asked = Asked(
        baseline=one.digest,
        candidate=other.digest,
        recorded=one.run is not None and other.run is not None and not wanted.upcast,
        draws=one.request.num_draws if wanted.draws is None else wanted.draws,
        between=wanted.between,
        upcast=wanted.upcast,
        launcher=wanted.launcher,
        compiler=wanted.compiler,
    )
    return Narrowing(
        one,
        other,
        asked,
        Folder(folder, upcast=wanted.upcast),
        made_by=f"paritrace {__version__}",
        deadline_seconds=wanted.deadline_seconds,
    )
