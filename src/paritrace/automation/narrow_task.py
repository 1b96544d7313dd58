"""The record of one narrowing under way: its sides, what is asked, its folder (CP-15)."""

from pathlib import Path

from msgspec import Struct

from paritrace import __version__
from paritrace.automation.narrow_folder import Folder
from paritrace.automation.narrow_records import Asked
from paritrace.automation.narrow_residents import resident_sides
from paritrace.automation.narrow_sides import AskedSide, Resident, asked_side, request_of_side
from paritrace.automation.rerun import DEADLINE_SECONDS
from paritrace.errors import RequestError
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
    checkpoint: str = ""  # both sides are sessions, and are put at this checkpoint of the baseline (SE-15)
    deadline_seconds: float = DEADLINE_SECONDS


def narrowing_of(baseline: Path, candidate: Path, *, folder: Path, wanted: Wanted) -> Narrowing:
    """Read both sides and put together what is asked; nothing is written but a checkpoint that CAND lacks.

    Raises as `asked_side` and `resident_sides` do.
    """
    if wanted.checkpoint:
        one, other = resident_sides(baseline, candidate, checkpoint=wanted.checkpoint, files=LOCAL)
    else:
        one = asked_side(baseline, name=BASELINE, launcher=wanted.launcher)
        other = asked_side(candidate, name=CANDIDATE, launcher=wanted.launcher)
    asked = Asked(
        baseline=one.digest,
        candidate=other.digest,
        recorded=one.run is not None and other.run is not None and not wanted.upcast,
        draws=_draws(one, wanted),
        between=_between(one, wanted),
        upcast=wanted.upcast,
        launcher=wanted.launcher,
        compiler=wanted.compiler,
    )
    if wanted.draws or wanted.upcast or wanted.compiler:
        for side in (one, other):
            request_of_side(side)
    return Narrowing(
        one,
        other,
        asked,
        Folder(folder, upcast=wanted.upcast),
        made_by=f"paritrace {__version__}",
        deadline_seconds=wanted.deadline_seconds,
    )


def _draws(baseline: AskedSide, wanted: Wanted) -> int:
    if wanted.draws is not None:
        return wanted.draws
    return 0 if isinstance(baseline.again, Resident) else baseline.again.num_draws


def _between(baseline: AskedSide, wanted: Wanted) -> tuple[int, int | None] | None:
    """A session takes steps from its checkpoint on: the next one where nothing is said."""
    again = baseline.again
    if not isinstance(again, Resident):
        return wanted.between
    first, end = wanted.between or (again.step, again.step + 1)
    if first < again.step or end is None:
        raise RequestError(
            f"steps {first} to {end} cannot be taken from checkpoint {again.checkpoint}, which is of step {again.step}",
            code="bad_steps",
            fix=f"name steps from {again.step} on, and an end: --between {again.step}:{again.step + 1}",
        )
    return first, end
