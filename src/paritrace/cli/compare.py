"""`paritrace compare`: where two runs part (CP-29, SU-3, SU-4)."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from paritrace import __version__
from paritrace.cli.allowances import judgement, judgement_options, status_of_comparison
from paritrace.cli.engines import Engine, engine_options, pool_of
from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_json_bytes
from paritrace.cli.progress import progress
from paritrace.cli.screens import write_screen
from paritrace.errors import ParitraceError, RequestError
from paritrace.reports.formats import NAMES, format_of, of_comparisons, suffixes

if TYPE_CHECKING:
    from paritrace.compare.judged_by import JudgedBy
    from paritrace.compare.policy import LoadedPolicy
    from paritrace.compare.renamings import Renaming
    from paritrace.compare.result import Comparison
    from paritrace.compare.resume_boundary import Asked
    from paritrace.compare.settings import Settings
    from paritrace.reports.keeping import Keeping
    from paritrace.runs.reading import Run


class Output(Struct, frozen=True):
    """Where results go. `formats` empty: all of them in a folder, text on stdout."""

    path: Path | None
    formats: tuple[str, ...]
    as_json: bool


class Judges(Struct, frozen=True):
    """Runs that the user names to judge by, and whether the candidate continues the baseline."""

    envelope: Path | None
    repeats: tuple[Path, ...]
    resume: "Asked | None" = None


@click.command()
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("cand", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Folder for everything, or a file."
)
@click.option("--format", "formats", multiple=True, type=click.Choice(NAMES), help="Only these; repeatable.")
@click.option("--ranks", metavar="R", help="Ranks to compare, as 0,1 [default: all].")
@click.option("--steps", metavar="A:B", help="Steps to compare, half-open [default: all].")
@click.option(
    "--resume",
    metavar="STEP[=OWN]",
    help="CAND was resumed from a checkpoint before step STEP of BASE; OWN: what CAND calls it [default: STEP or 0].",
)
@click.option("--ignore", multiple=True, metavar="P", help="Leave out modules, functions or files like P; repeatable.")
@click.option("--strip-prefix", multiple=True, metavar="P", help="Read module names without P; repeatable.")
@click.option("--dims", multiple=True, metavar="P=D", help="Tensors like P lie as D on the ranks (tp:0); repeatable.")
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="A=B",
    help="Read names like A (of modules; file:A, function:A) as B; repeatable.",
)
@click.option(
    "--mask",
    "masks",
    multiple=True,
    metavar="P=F:K",
    help="In slots like P (MODULE[:SLOT]), elements where tensor K of F.safetensors is 0 are padding; repeatable.",
)
@click.option(
    "--envelope",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Judge by the perturbed draws of RUN, of the same program as BASE [default: those of BASE].",
)
@click.option(
    "--noise",
    "repeats",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Judge by this repeat of BASE; repeatable, four or more.",
)
@click.option("--policy", type=click.Path(path_type=Path), metavar="FILE", help="Judge by the rules in FILE (TOML).")
@engine_options
@judgement_options
@json_option
def compare(  # noqa: PLR0913  one parameter per option of the synopsis; they become three records at once
    base: Path,
    cand: Path,
    output: Path | None,
    formats: tuple[str, ...],
    ranks: str | None,
    steps: str | None,
    resume: str | None,
    ignore: tuple[str, ...],
    strip_prefix: tuple[str, ...],
    dims: tuple[str, ...],
    maps: tuple[str, ...],
    masks: tuple[str, ...],
    envelope: Path | None,
    repeats: tuple[Path, ...],
    policy: Path | None,
    workers: int | None,
    engine: str,
    exit_code: bool,
    allow: tuple[str, ...],
    exit_zero: bool,
    as_json: bool,
) -> int:
    """Compare run CAND with run BASE: where they part, what changed, and what could not be checked.

    Exit status 0, whatever was found. With --exit-code: 1 when something that was computed differs, 3 when calls are
    undetermined or evidence is incomplete; with --policy: 1 when it fails, 3 when it is undetermined. The result is
    kept below CAND unless -o names another place.
    """
    from paritrace.cli.selections import parse_ranks, parse_steps
    from paritrace.compare.folds_dims import parse_dims
    from paritrace.compare.masks import parse_mask
    from paritrace.compare.resume_boundary import parse_resume
    from paritrace.compare.settings import Settings

    asked = judgement(exit_code=exit_code, allow=allow, exit_zero=exit_zero, envelope=True)
    settings = Settings(
        steps=parse_steps(steps),
        ranks=parse_ranks(ranks),
        ignore=ignore,
        strip_prefix=strip_prefix,
        dims=tuple(parse_dims(text) for text in dims),
        renamings=read_maps(maps),
        masks=tuple(parse_mask(text) for text in masks),
        policy=None if policy is None else read_policy(policy, allow=allow),
    )
    judges = Judges(envelope=envelope, repeats=repeats, resume=None if resume is None else parse_resume(resume))
    output_to = Output(path=output, formats=formats, as_json=as_json)
    found = _compared((base, cand), settings, judges, Engine(engine, workers), output=output_to)
    return status_of_comparison(found, asked)


def read_maps(maps: Sequence[str]) -> "tuple[Renaming, ...]":
    """The maps that were given as A=B, and the accepted ones of files.

    Raises:
        RequestError: Refused: `bad_map`, `bad_name_map`, `conflicting_maps`.
        HostError: Refused: a file cannot be read.
    """
    from paritrace.compare.name_map_file import accepted_maps
    from paritrace.compare.renamings import parse_map, without_conflicts
    from paritrace.files import LOCAL

    found = [(parse_map(text),) if "=" in text else accepted_maps(LOCAL.read(Path(text)), name=text) for text in maps]
    return without_conflicts([rule for rules in found for rule in rules])


def read_policy(path: Path, *, allow: Sequence[str] = ()) -> "LoadedPolicy":
    """The rules in a file.

    Raises:
        RequestError: Refused: `bad_policy` with every problem of the file, `two_rules` for --allow beside it.
        HostError: Refused: the file cannot be read.
    """
    from paritrace.compare.policy_file import parse_policy
    from paritrace.files import LOCAL

    if allow:
        raise RequestError(
            "--allow and --policy both say what is accepted", code="two_rules", fix="write it into the policy"
        )
    return parse_policy(LOCAL.read(path), name=str(path))


def _compared(
    paths: tuple[Path, Path], settings: "Settings", judges: Judges, engine: Engine, *, output: Output
) -> "Comparison":
    from paritrace.compare.engine import compare as compare_runs
    from paritrace.compare.repeats_joined import with_repeats
    from paritrace.compare.resume_joined import resumed
    from paritrace.reports.judging_cost import judging_seconds, narrowing_seconds
    from paritrace.reports.keeping import Keeping
    from paritrace.reports.sources import sources_of
    from paritrace.runs.reading import open_run

    _require_a_place(output)
    base, cand = paths
    with progress() as stage, open_run(base) as baseline, open_run(cand) as candidate, ExitStack() as opened:
        stage("comparing")
        if judges.resume is not None:
            settings = resumed((baseline, candidate), judges.resume, settings=settings)
        pool = pool_of((baseline, candidate), engine, ranks=settings.ranks)
        by = judged_by(baseline, judges, opened=opened)
        compared = compare_runs(baseline, candidate, settings, by=by, pool=pool)
        result = compared.result
        if judges.repeats and by is not None:
            stage("holding the baseline against its repeats")
            result = with_repeats(result, baseline, by.runs, settings=settings, pool=pool)
        keeping = Keeping(
            comparison=result,
            rows=compared.rows,
            token_rows=compared.token_rows,
            sources=(*sources_of(baseline, side="baseline"), *sources_of(candidate, side="candidate")),
            made_by=f"paritrace {__version__}",
            judge_seconds=judging_seconds(result, baseline=baseline, candidate=candidate),
            narrow_seconds=narrowing_seconds(baseline=baseline, candidate=candidate),
        )
        stage("writing the result")
        _deliver(keeping, output)
    return result


def judged_by(baseline: "Run", judges: Judges, *, opened: ExitStack) -> "JudgedBy | None":
    """The runs to judge by: those named, else the draws that lie beside the baseline; None without any.

    Raises:
        RequestError: Refused: `two_judges` for both kinds at once, `no_draws` for a run without any.
        EvidenceError: Refused: a named run cannot be opened.
    """
    from paritrace.compare.judged_by import JudgedBy
    from paritrace.compare.judgement import PERTURBED, REPEATS
    from paritrace.runs.draws import draws_of
    from paritrace.runs.reading import open_run

    if judges.envelope is not None and judges.repeats:
        raise RequestError("--envelope and --noise judge by different runs", code="two_judges", fix="give one of them")
    if judges.repeats:
        return JudgedBy(REPEATS, tuple(opened.enter_context(open_run(path)) for path in judges.repeats))
    origin = None if judges.envelope is None else opened.enter_context(open_run(judges.envelope))
    paths = draws_of((origin or baseline).folder)
    if not paths:
        if origin is None:
            return None
        raise RequestError(
            f"{judges.envelope} holds no perturbed draws", code="no_draws", fix="make them: paritrace run --perturb 8 …"
        )
    return JudgedBy(PERTURBED, tuple(opened.enter_context(open_run(path)) for path in paths), origin)


def _require_a_place(output: Output) -> None:
    """Refuse before anything is read what could not be delivered."""
    if output.path is None and (len(output.formats) > 1 or "parquet" in output.formats):
        raise RequestError(
            f"--format {' --format '.join(output.formats)} needs a place",
            code="no_place_for_format",
            fix="name a folder or file with -o",
        )
    if output.path is not None and not output.formats and _is_unknown(output.path):
        raise RequestError(
            f"no format of a comparison is written to {output.path.name}",
            code="no_such_format",
            fix=f"name a file that ends in {suffixes()}, or a folder (one that is there, or a name without a suffix)",
        )


def _is_unknown(path: Path) -> bool:
    return bool(path.suffix) and not path.is_dir() and format_of(path) is None


def _deliver(keeping: "Keeping", output: Output) -> None:
    from paritrace.files import LOCAL
    from paritrace.reports.keeping import write_one

    if output.path is None:
        _keep_beside_candidate(keeping, output)
        return
    name = _one_format(output)
    if name is not None:
        write_one(keeping, output.path, name=name, files=LOCAL)
        _print(keeping.comparison, output, directory=None, found=False)
        return
    _keep_in_folder(keeping, output.path, output)


def _one_format(output: Output) -> str | None:
    """Return the format of the file that `-o` names, None when it names a folder."""
    if output.path is None or output.path.is_dir() or len(output.formats) > 1:
        return None
    if output.formats:
        return output.formats[0] if output.path.suffix else None
    form = format_of(output.path)
    return None if form is None else form.name


def _keep_in_folder(keeping: "Keeping", directory: Path, output: Output) -> None:
    from msgspec.structs import replace

    from paritrace.files import LOCAL
    from paritrace.reports.keeping import keep

    wanted = replace(keeping, formats=output.formats or of_comparisons())
    comparison = keep(wanted, directory, files=LOCAL)
    _print(comparison, output, directory=directory, found=False)


def _keep_beside_candidate(keeping: "Keeping", output: Output) -> None:
    """Keep the result below the candidate; where that cannot be written, say so and print it all the same."""
    from paritrace.clock import SYSTEM
    from paritrace.files import LOCAL
    from paritrace.reports.keeping import default_directory, keep, remember

    directory = _seen_from_here(default_directory(keeping))
    try:
        comparison = keep(keeping, directory, files=LOCAL, found_without_name=True)
        remember(keeping, files=LOCAL, clock=SYSTEM)
    except ParitraceError as error:  # a full disk, a read-only run, something damaged in the way: the answer is due
        note(f"the result was not kept: {error.message}; name another place with -o")
        _print(keeping.comparison, output, directory=None, found=False)
        return
    costs = (keeping.judge_seconds, keeping.narrow_seconds)
    _print(comparison, output, directory=directory, found=True, costs=costs)


def _seen_from_here(directory: Path) -> Path:
    """The shorter spelling of a folder below the present one: it is read and typed by people."""
    here = Path.cwd()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory


def _print(
    comparison: "Comparison",
    output: Output,
    *,
    directory: Path | None,
    found: bool,
    costs: tuple[int | None, int | None] = (None, None),
) -> None:
    if output.as_json or output.formats == ("json",):
        from msgspec.structs import replace

        from paritrace.reports.documents import comparison_document

        reports = comparison.reports if directory is None else comparison.reports | {"directory": str(directory)}
        write_json_bytes(comparison_document(replace(comparison, reports=reports)))
        return
    from paritrace.reports.first_screen import Kept, first_screen

    kept = None if directory is None else Kept(str(directory), found, *costs)
    write_screen(first_screen(comparison, kept=kept))
