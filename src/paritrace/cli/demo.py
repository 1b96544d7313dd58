"""`paritrace demo`: captures two real small two-rank trainings that differ by one mistake and compares them (SU-6)."""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import files as package_files
from pathlib import Path

import click
from msgspec import Struct

from paritrace.cli.output import note, write_text
from paritrace.errors import HostError, InternalError, Outcome, RequestError
from paritrace.files import LOCAL, Files
from paritrace.process.children import Finished, run_child
from paritrace.process.ranks import Kill, run_ranks

TRAINING = "demo_training.py.txt"
# The planted mistake: the key heads are laid out a b a b instead of a a b b, so that two query heads read the wrong
# keys. Shapes agree and the loss falls as before; this mistake was made in public more than once.
RIGHT = "        k = k.repeat_interleave(HEADS // GROUPS, dim=1)\n"
WRONG = "        k = k.repeat(1, HEADS // GROUPS, 1, 1)\n"
PARITRACE = (sys.executable, "-m", "paritrace")
LEVELS = ("--level", "module", "--level", "op", "--steps", "0:2")
REPORT = "report.html"
NUM_RANKS = 2
# In the candidate this rank is killed two steps before the end, as happens to ranks; what it wrote until then counts.
LOST = Kill(rank=1, text="step 3 ")
# One capture takes seconds; only a machine in trouble needs minutes.
DEADLINE_SECONDS = 300.0


class Side(Struct, frozen=True):
    """One of the two trainings: its script and the run directory of its capture."""

    name: str
    script: Path
    run: Path


@click.command()
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR", help="Put everything here [default: a new temporary one]."
)
@click.option("--open", "show", is_flag=True, help="Show the report in a browser.")
def demo(keep: Path | None, show: bool) -> None:
    """Capture two small trainings that differ by one mistake, compare them, show where they part."""
    require_torch()
    place = new_place(keep, files=LOCAL)
    text = package_files("paritrace.cli").joinpath(TRAINING).read_text(encoding="utf-8")
    baseline = write_side("baseline", text, place=place, files=LOCAL)
    candidate = write_side("candidate", with_mistake(text), place=place, files=LOCAL)
    capture(baseline)
    capture(candidate, kill=LOST)
    compared = paritrace("compare", str(baseline.run), str(candidate.run), directory=place)
    write_text(compared.stdout.rstrip("\n"))
    report = write_report(candidate, place=place)
    write_text(reveal(text, place=place, candidate=candidate, report=report))
    if show:
        show_in_browser(report)


def require_torch() -> None:
    """Raises HostError (Refused) without torch: the two trainings are real."""
    if importlib.util.find_spec("torch") is None:
        raise HostError(
            "the demo trains two small models and needs PyTorch, which is not installed",
            code="missing_extra",
            fix="pip install 'paritrace[torch]'",
        )


def new_place(keep: Path | None, *, files: Files) -> Path:
    """The directory of this demo: `keep`, which must be new or empty, or a new temporary one."""
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="paritrace-demo-"))
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise RequestError(
            f"{keep} exists and is not an empty directory", code="already_there", fix="name a new directory with --keep"
        )
    files.mkdir(keep)
    return keep.resolve()


def with_mistake(text: str) -> str:
    """The training's source with the one mistake in it."""
    if text.count(RIGHT) != 1:
        raise InternalError("the demo's line is not in its training", code="internal", fix="reinstall paritrace")
    return text.replace(RIGHT, WRONG)


def write_side(name: str, text: str, *, place: Path, files: Files) -> Side:
    directory = place / name
    files.mkdir(directory)
    side = Side(name=name, script=directory / "train.py", run=directory / "run")
    files.replace(side.script, text.encode())
    return side


def capture(side: Side, *, kill: Kill | None = None) -> None:
    """Capture both ranks of one training call by call and say what each printed last."""
    note(f"capturing the {side.name}, {NUM_RANKS} ranks: paritrace run -o {side.run} {' '.join(LEVELS)} train.py")
    ranks = run_ranks(
        (*PARITRACE, "run", "-o", str(side.run), *LEVELS, str(side.script)),
        num_ranks=NUM_RANKS,
        directory=side.script.parent,
        environment={**_environment(), "GLOO_SOCKET_IFNAME": "lo"},
        deadline_seconds=DEADLINE_SECONDS,
        kill=kill,
    )
    for number, done in enumerate(ranks):
        last = done.stdout.strip().splitlines()[-1:] or [f"rank {number}  no output"]
        end = ended(number, done, kill=kill)
        note(f"    {last[0]}    {end}")
        if kill is None and done.status != 0:
            raise failed(("run", "-o", str(side.run)), done)


def ended(rank: int, done: Finished, *, kill: Kill | None) -> str:
    """How a rank ended, in words: the killed one, and the one whose peer is gone, did not end by themselves."""
    if kill is None or done.status == 0:
        return f"({done.seconds:.0f} s)"
    return "killed there, on purpose" if rank == kill.rank else f"then its peer was gone: status {done.status}"


def paritrace(*arguments: str, directory: Path) -> Finished:
    """Run one paritrace command as a user would."""
    command = (*PARITRACE, *arguments)
    done = run_child(command, directory=directory, environment=_environment(), deadline_seconds=DEADLINE_SECONDS)
    if done.status != 0:
        raise failed(arguments, done)
    return done


def _environment() -> dict[str, str]:
    """This process's environment without settings of this user, so that every demo is alike."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PARITRACE_")}


def failed(arguments: Sequence[str], done: Finished) -> HostError:
    note(done.stderr.rstrip("\n"))
    return HostError(
        f"`paritrace {' '.join(arguments)}` ended with status {done.status}",
        code="demo_failed",
        fix="its own message stands above",
        outcome=Outcome.FAILED,
    )


def write_report(candidate: Side, *, place: Path) -> Path:
    """Write the kept comparison as a page and return its path."""
    from paritrace.reports.exporting import export_result
    from paritrace.reports.formats import Cut

    path = place / REPORT
    export_result(candidate.run, path, names=("html",), cut=Cut(), files=LOCAL)
    return path


def show_in_browser(report: Path) -> None:
    """Open a page in the user's browser; where there is none, say so."""
    import webbrowser

    if not webbrowser.open(report.as_uri()):
        note(f"no browser could be opened here; the report is {report}")


def reveal(text: str, *, place: Path, candidate: Side, report: Path) -> str:
    """What was planted, for comparison with what was found, and where everything lies."""
    line = text[: text.index(RIGHT)].count("\n") + 1
    return "\n".join(
        (
            "",
            f"planted   {candidate.script.relative_to(place)}:{line}",
            f"          - {RIGHT.strip()}",
            f"          + {WRONG.strip()}",
            f"report    {report}",
            f"results   {candidate.run / 'comparisons'}",
            f"sources   {place}",
        )
    )
