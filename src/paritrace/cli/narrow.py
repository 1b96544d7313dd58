"""`paritrace narrow`: captures two runs again, finer and finer, until the call where they part stands (CP-15)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

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
    "--checkpoint",
    metavar="NAME",
    help="BASE and CAND are idle sessions: put both at this checkpoint of BASE for every capture, without a restart.",
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
    checkpoint: str | None,
    launcher: str | None,
    deadline: float | None,
    exit_code: bool,
    allow: tuple[str, ...],
    exit_zero: bool,
    as_json: bool,
) -> int:
    """Run BASE and CAND again, captured finer and finer only where they differ, until a single call stands.

    BASE and CAND are run directories made by `paritrace run`, which hold how they were started, or request files; with
    --checkpoint, directories of two sessions. Every round is kept in DIR; the same command goes on after an
    interruption. Exit statuses are those of `compare`.
    """
    from paritrace.automation.narrow import Telling
    from paritrace.automation.narrow import narrow as narrow_runs
    from paritrace.automation.narrow_screen import round_line
    from paritrace.automation.narrow_task import Wanted, narrowing_of
    from paritrace.automation.rerun import DEADLINE_SECONDS
    from paritrace.cli.selections import parse_steps

    asked = judgement(exit_code=exit_code, allow=allow, exit_zero=exit_zero)
    wanted = Wanted(
        between=parse_steps(between),
        draws=perturb,
        upcast=upcast or "",
        launcher=launcher or "",
        compiler=compiler,
        checkpoint=checkpoint or "",
        deadline_seconds=DEADLINE_SECONDS if deadline is None else deadline,
    )
    task = narrowing_of(base, cand, folder=output or cand.with_name(f"{cand.name}.narrow"), wanted=wanted)
    with progress() as stage:
        result = narrow_runs(task, Telling(stage=stage, ended=lambda one: note(round_line(one))))
    _print(result, task, as_json=as_json)
    return _status(result, asked)


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
        case Ended.NOT_REPEATABLE | Ended.NOT_SEEN_AGAIN | Ended.NOT_COMPARED:
            return ExitStatus.UNDETERMINED
        case Ended.NO_DIFFERENCE | Ended.INSIDE_ROUND_OFF:
            return ExitStatus.DONE
