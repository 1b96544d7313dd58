"""`paritrace narrow`: captures two runs again, finer and finer, until the call where they part stands (CP-15)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from paritrace import __version__
from paritrace.cli.allowances import Judgement, judgement, judgement_options
from paritrace.cli.options import A_YEAR_SECONDS, FiniteRange, json_option
from paritrace.cli.output import ExitStatus, note, write_json_bytes
from paritrace.cli.progress import progress
from paritrace.cli.screens import write_screen

if TYPE_CHECKING:
    from paritrace.automation.narrow_records import Narrowed
    from paritrace.automation.narrow_task import Narrowing
    from paritrace.compare.result import Comparison

_PATH = click.Path(path_type=Path)


class Wanted(NamedTuple):
    """What the options say of how to look."""

    between: tuple[int, int | None] | None
    perturb: int | None
    upcast: str
    launcher: str
    compiler: bool


@click.command()
@click.argument("base", type=_PATH)
@click.argument("cand", type=_PATH)
@click.option("-o", "--output", type=_PATH, metavar="DIR", help="Folder of the rounds [default: CAND.narrow].")
@click.option("--between", metavar="A:B", help="Look for the first difference in these steps only, half-open.")
@click.option(
    "--perturb",
    type=click.IntRange(min=8),
    metavar="K",
    help="Judge each round by K perturbed runs of BASE [default: as many as BASE has beside it].",
)
@click.option(
    "--upcast",
    type=click.Choice(["float32", "float64"]),
    help="Run both sides in this precision: other algorithms stay apart, round-off vanishes.",
)
@click.option(
    "--compile",
    "compiler",
    is_flag=True,
    help="CAND uses torch.compile and BASE does not: find the part of the compiler, by torch's own bisector.",
)
@click.option(
    "--launcher",
    metavar="COMMAND",
    help='What starts the ranks, where a run does not know it: "torchrun --nproc-per-node 2".',
)
@click.option(
    "--deadline",
    type=FiniteRange(min=1, max=A_YEAR_SECONDS),
    metavar="SECONDS",
    help="End a capture that takes longer [default: a day].",
)
@judgement_options
@json_option
def narrow(  # noqa: PLR0913  one parameter per option of the synopsis; they become two records at once
    base: Path,
    cand: Path,
    output: Path | None,
    between: str | None,
    perturb: int | None,
    upcast: str | None,
    compiler: bool,
    launcher: str | None,
    deadline: float | None,
    exit_code: bool,
    allow: tuple[str, ...],
    exit_zero: bool,
    as_json: bool,
) -> int:
    """Run BASE and CAND again, captured finer and finer only where they differ, until a single call stands.

    BASE and CAND are run directories made by `paritrace run`, which hold how they were started, or request files. Every
    round is kept in DIR; the same command goes on after an interruption. Exit statuses are those of `compare`.
    """
    from paritrace.automation.narrow import Telling
    from paritrace.automation.narrow import narrow as narrow_runs
    from paritrace.automation.narrow_screen import round_line
    from paritrace.cli.selections import parse_steps

    asked = judgement(exit_code=exit_code, allow=allow, exit_zero=exit_zero)
    wanted = Wanted(parse_steps(between), perturb, upcast or "", launcher or "", compiler=compiler)
    task = _task((base, cand), output, wanted)
    if deadline is not None:
        from msgspec.structs import replace

        task = replace(task, deadline_seconds=deadline)
    with progress() as stage:
        result = narrow_runs(task, Telling(stage=stage, ended=lambda one: note(round_line(one))))
    _print(result, task, as_json=as_json)
    return _status(result, asked)


def _task(paths: tuple[Path, Path], output: Path | None, wanted: Wanted) -> Narrowing:
    from paritrace.automation.narrow_folder import Folder
    from paritrace.automation.narrow_records import Asked
    from paritrace.automation.narrow_sides import asked_side
    from paritrace.automation.narrow_task import BASELINE, CANDIDATE, Narrowing

    baseline = asked_side(paths[0], name=BASELINE, launcher=wanted.launcher)
    candidate = asked_side(paths[1], name=CANDIDATE, launcher=wanted.launcher)
    asked = Asked(
        baseline=baseline.digest,
        candidate=candidate.digest,
        recorded=baseline.run is not None and candidate.run is not None and not wanted.upcast,
        draws=baseline.request.num_draws if wanted.perturb is None else wanted.perturb,
        between=wanted.between,
        upcast=wanted.upcast,
        launcher=wanted.launcher,
        compiler=wanted.compiler,
    )
    folder = output or paths[1].with_name(f"{paths[1].name}.narrow")
    return Narrowing(
        baseline, candidate, asked, Folder(folder, upcast=wanted.upcast), made_by=f"paritrace {__version__}"
    )


def _print(result: Narrowed, task: Narrowing, *, as_json: bool) -> None:
    if as_json:
        from paritrace.reports.documents import encoded

        write_json_bytes(encoded(result))
        return
    from paritrace.automation.narrow_screen import narrow_screen

    write_screen(narrow_screen(result, _last(result, task)))


def _last(result: Narrowed, task: Narrowing) -> Comparison:
    from paritrace.automation.narrow_result import last_compared

    return last_compared([task.folder.seen(one) for one in result.rounds], result.ended)


def _status(result: Narrowed, asked: Judgement) -> ExitStatus:
    """1 for a difference that stands, 3 where the runs could not be told apart or the evidence ended, else 0."""
    from paritrace.automation.narrow_records import Ended

    if not asked.exit_code or asked.exit_zero:
        return ExitStatus.DONE
    match result.ended:
        case Ended.FOUND | Ended.OUTSIDE | Ended.EVIDENCE_ENDS:
            return ExitStatus.DIFFERENCE
        case Ended.NOT_REPEATABLE | Ended.NOT_SEEN_AGAIN:
            return ExitStatus.UNDETERMINED
        case Ended.NO_DIFFERENCE | Ended.INSIDE_ROUND_OFF:
            return ExitStatus.DONE
