"""One trial of torch's compiler bisector: the candidate again, with a part of the compiler off; good or bad (CP-15).

Started as `python -m paritrace.automation.compiler_trial FOLDER` by the bisector, which tells the candidate through
variables which part is off and reads our exit status: 0 good, 1 bad.
"""

import os
import sys
from pathlib import Path

from msgspec import Struct

from paritrace.automation.draws_beside import draws_beside
from paritrace.automation.narrow_rules import parts_beyond
from paritrace.automation.rerun import require_run, rerun
from paritrace.compare.engine import compare
from paritrace.compare.settings import COMPILED, Settings
from paritrace.errors import HostError, ParitraceError
from paritrace.files import LOCAL, Files
from paritrace.reports.documents import decoded, encoded
from paritrace.runs.reading import open_run
from paritrace.runs.request import RunRequest

ASKED = "trial.json"
FAILED = "failed.txt"
PREFIX = "trial-"
TRIED = "tried.json"
GOOD, BAD = 0, 1
MOST_TRIALS = 1000  # halving as many parts as a graph of a million nodes has takes twenty


class Trial(Struct, frozen=True, forbid_unknown_fields=True):
    """What every trial of one bisection does alike."""

    request: RunRequest  # of the candidate
    baseline: str  # the run that it is held against, its draws beside it
    step: int
    options: tuple[str, ...]
    deadline_seconds: float


class Tried(Struct, frozen=True, forbid_unknown_fields=True):
    """One trial that has ended. One whose program failed (`status` not 0) is no good one: it shows nothing equal."""

    backend: str
    subsystem: str
    good: bool
    seconds: float
    status: int = 0


def try_once(folder: Path, *, files: Files = LOCAL) -> int:
    """Run the candidate, compare, keep the answer; the status for the bisector.

    A fault of ours is no answer, whatever it is: it is written to `FAILED`, and every later trial ends at once.
    """
    if files.exists(folder / FAILED):
        return BAD
    try:
        return GOOD if _tried(folder, files=files).good else BAD
    except ParitraceError as error:
        told = f"{error.message}\n{error.fix}\n"
    except Exception as error:  # noqa: BLE001  the bisector would read the interpreter's status as an answer
        told = f"a fault of paritrace itself: {type(error).__name__}: {' '.join(str(error).split())}\n"
    files.replace(folder / FAILED, told.encode("utf-8", "surrogateescape"))
    return BAD


def _tried(folder: Path, *, files: Files) -> Tried:
    asked = decoded(files.read(folder / ASKED), Trial, name=str(folder / ASKED))
    place = _new(folder, files=files)
    done = rerun(
        asked.request,
        output=place / "candidate",
        options=asked.options,
        environment=os.environ,
        deadline_seconds=asked.deadline_seconds,
    )
    require_run(done, "the candidate", files=files)
    ended = Tried(
        backend=os.environ.get("TORCH_BISECT_BACKEND", ""),
        subsystem=os.environ.get("TORCH_BISECT_SUBSYSTEM", ""),
        good=not done.status and not _parts(asked, done.run),
        seconds=round(done.seconds, 3),
        status=done.status,
    )
    files.replace(place / TRIED, encoded(ended))
    return ended


def _parts(asked: Trial, candidate: Path) -> bool:
    settings = Settings(steps=(asked.step, asked.step + 2), strip_prefix=(COMPILED,))
    with open_run(Path(asked.baseline)) as base, open_run(candidate) as cand, draws_beside(base) as by:
        return parts_beyond(compare(base, cand, settings, by=by).result)


def _new(folder: Path, *, files: Files) -> Path:
    for number in range(1, MOST_TRIALS + 1):
        place = folder / f"{PREFIX}{number:02}"
        if files.claim(place):
            return place
    raise HostError(
        f"{folder} holds {MOST_TRIALS} trials", code="already_there", fix="name another folder with -o, and begin anew"
    )


if __name__ == "__main__":
    sys.exit(try_once(Path(sys.argv[1])))
