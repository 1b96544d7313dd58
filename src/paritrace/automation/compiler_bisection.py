"""Which part of torch's compiler makes a compiled run part from an eager one, by torch's own bisector (CP-15)."""

import os
import re
from pathlib import Path

from msgspec import Struct

from paritrace.automation.compiler_trial import ASKED, FAILED, PREFIX, TRIED, Trial, Tried
from paritrace.errors import HostError, Outcome
from paritrace.files import LOCAL, Files
from paritrace.process.logged import run_logged
from paritrace.reports.documents import decoded, encoded

BISECTOR = "torch._inductor.compiler_bisector"
CACHE = "compiler-cache"  # the bisector removes the compiler's cache folder when it begins: this one, never the user's
LOG = "bisector.log"
_FOUND = re.compile(
    r"^Bisection complete: BisectionResult\(backend='(?P<backend>[^']*)', subsystem=(?P<subsystem>None|'[^']*'),"
    r" bisect_number=(?P<number>None|\d+), debug_info=(?P<info>.*)\)$",
    re.MULTILINE,
)


class Bisected(Struct, frozen=True):
    """The part of the compiler: backend, in it the subsystem, and which application of that; "" where torch names none.

    `backend` is "" when no backend parted.
    """

    backend: str
    subsystem: str
    number: str
    detail: str
    trials: tuple[Tried, ...]
    command: tuple[str, ...]


def bisect_compiler(folder: Path, trial: Trial, *, deadline_seconds: float, files: Files = LOCAL) -> Bisected:
    """Run the bisector: eager, aot_eager, decompositions, inductor, then the parts of the first that parts.

    Raises:
        HostError: Failed: `rerun_failed`, a trial could not be made or the bisector itself failed; `child_too_slow`.
    """
    files.mkdir(folder)
    files.replace(folder / ASKED, encoded(trial))
    python = trial.request.python
    command = (
        python,
        "-m",
        BISECTOR,
        "run",
        python,
        "-m",
        "paritrace.automation.compiler_trial",
        str(folder.resolve()),
    )
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str((folder / CACHE).resolve())}
    files.replace(folder / LOG, b"")
    with (folder / LOG).open("ab") as log:
        done = run_logged(
            command, directory=Path.cwd(), environment=environment, log=log, deadline_seconds=deadline_seconds
        )
    printed = files.read(folder / LOG).decode("utf-8", "replace")
    trials, killed = trials_of(folder, files=files)
    failed = _first_line(files.read_if_present(folder / FAILED)) or killed
    if failed or done.status or "Bisection complete" not in printed:
        raise HostError(
            f"torch's bisector did not end: {failed or f'status {done.status}'}",
            code="rerun_failed",
            fix=f"read what it printed: {folder / LOG}",
            outcome=Outcome.FAILED,
        )
    return bisected(printed, trials, command)


def bisected(printed: str, trials: tuple[Tried, ...], command: tuple[str, ...]) -> Bisected:
    """What the bisector printed, as an answer."""
    found = _FOUND.search(printed)
    if found is None:
        return Bisected("", "", "", "", trials, command)
    told = {name: "" if text == "None" else text.strip("'\"") for name, text in found.groupdict().items()}
    return Bisected(told["backend"], told["subsystem"], told["number"], told["info"], trials, command)


def trials_of(folder: Path, *, files: Files) -> tuple[tuple[Tried, ...], str]:
    """The trials that ended, and what is said of one that was killed before: its status was read as an answer."""
    places = [path for path in sorted(files.list(folder)) if path.name.startswith(PREFIX)]
    ended = [(path, files.read_if_present(path / TRIED)) for path in places]
    killed = [path.name for path, data in ended if data is None]
    trials = tuple(decoded(data, Tried, name=str(path)) for path, data in ended if data is not None)
    return trials, f"{killed[0]} ended without an answer" if killed else ""


def _first_line(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace").partition("\n")[0]


def part_in_words(found: Bisected) -> str:
    """The part in a few words."""
    failed = sum(bool(trial.status) for trial in found.trials)
    told = f"{len(found.trials)} trials" + (f", of which {failed} failed and count as parting" if failed else "")
    if not found.backend:
        return "no backend of the compiler parts from the eager run"
    where = f"backend {found.backend}"
    if found.subsystem:
        where += f", {found.subsystem}"
    if found.number and found.detail:
        where += f" {found.number} ({found.detail})"
    return f"{where}; {told}"
