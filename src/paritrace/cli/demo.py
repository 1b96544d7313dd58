"""`paritrace demo`: captures two real small trainings that differ by one mistake and compares them (SU-6)."""

import importlib.util
import os
import sys
import tempfile
from importlib.resources import files as package_files
from pathlib import Path

import click
from msgspec import Struct

from paritrace.cli.output import note, write_text
from paritrace.errors import HostError, InternalError, Outcome, RequestError
from paritrace.files import LOCAL, Files
from paritrace.process.children import Finished, run_child

TRAINING = "demo_training.py.txt"
# The planted mistake: the key heads are laid out a b a b instead of a a b b, so that two query heads read the wrong
# keys. Shapes agree and the loss falls as before; this mistake was made in public more than once.
RIGHT = "        k = k.repeat_interleave(HEADS // GROUPS, dim=1)\n"
WRONG = "        k = k.repeat(1, HEADS // GROUPS, 1, 1)\n"
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
def demo(keep: Path | None) -> None:
    """Capture two small trainings that differ by one mistake, compare them, show where they part."""
    require_torch()
    place = new_place(keep, files=LOCAL)
    text = package_files("paritrace.cli").joinpath(TRAINING).read_text(encoding="utf-8")
    baseline = write_side("baseline", text, place=place, files=LOCAL)
    candidate = write_side("candidate", with_mistake(text), place=place, files=LOCAL)
    for side in (baseline, candidate):
        capture(side)
    compared = paritrace("compare", str(baseline.run), str(candidate.run), directory=place)
    write_text(compared.stdout.rstrip("\n"))
    write_text(reveal(text, place=place, candidate=candidate))


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


def capture(side: Side) -> None:
    """Capture one training call by call and say what it printed last."""
    note(f"capturing the {side.name}: paritrace run -o {side.run} --level module --level op --steps 0:2 train.py")
    options = ("--level", "module", "--level", "op", "--steps", "0:2")
    done = paritrace("run", "-o", str(side.run), *options, str(side.script), directory=side.script.parent)
    last = done.stdout.strip().splitlines()[-1:] or ["no output"]
    note(f"    {last[0]}    ({done.seconds:.0f} s)")


def paritrace(*arguments: str, directory: Path) -> Finished:
    """Run one paritrace command as a user would; settings of this user do not reach it, so that every demo is alike."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PARITRACE_")}
    command = (sys.executable, "-m", "paritrace", *arguments)
    done = run_child(command, directory=directory, environment=environment, deadline_seconds=DEADLINE_SECONDS)
    if done.status != 0:
        note(done.stderr.rstrip("\n"))
        raise HostError(
            f"`paritrace {' '.join(arguments)}` ended with status {done.status}",
            code="demo_failed",
            fix="its own message stands above",
            outcome=Outcome.FAILED,
        )
    return done


def reveal(text: str, *, place: Path, candidate: Side) -> str:
    """What was planted, for comparison with what was found, and where everything lies."""
    line = text[: text.index(RIGHT)].count("\n") + 1
    return "\n".join(
        (
            "",
            f"planted   {candidate.script.relative_to(place)}:{line}",
            f"          - {RIGHT.strip()}",
            f"          + {WRONG.strip()}",
            f"results   {candidate.run / 'comparisons'}",
            f"sources   {place}",
        )
    )
