"""`paritrace compare`: where two runs part (CP-29, SU-3, SU-4)."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from paritrace import __version__
from paritrace.cli.allowances import Judgement, allowed_by, judgement, judgement_options, status_of_comparison
from paritrace.cli.delivering import deliver
from paritrace.cli.engines import Engine, engine_options, pool_of
from paritrace.cli.options import json_option, scratch_option
from paritrace.cli.output import ExitStatus
from paritrace.cli.progress import progress
from paritrace.cli.report_options import Output, report_options, require_a_place
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.compare.judged_by import JudgedBy
    from paritrace.compare.policy import LoadedPolicy
    from paritrace.compare.renamings import Renaming
    from paritrace.compare.resume_boundary import Asked
    from paritrace.compare.settings import Settings
    from paritrace.runs.reading import Run


class Judges(Struct, frozen=True):
    """Runs that the user names to judge by, and whether the candidate continues the baseline."""

    envelope: Path | None
    repeats: tuple[Path, ...]
    resume: "Asked | None" = None


@click.command()
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("cand", type=click.Path(path_type=Path))
@report_options
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
@scratch_option
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

    Where both are what an evaluation tool left (Inspect logs, a Harbor job …), their attempts are compared, with
    --noise against repeats of BASE; see `paritrace attempts`. Where both are profilers' traces (JSON or gzip), their
    device work is: where the sequences of kernels first part. Where both are directories of resident sessions, their
    steps are, segment by segment: which were taken under the same conditions, and where states part.

    Exit status 0, whatever was found. With --exit-code: 1 when something that was computed differs, 3 when calls are
    undetermined or evidence is incomplete; with --policy: 1 when it fails, 3 when it is undetermined. The result is
    kept below CAND unless -o names another place.
    """
    from paritrace.cli.compare_attempts import (
        Asked,
        compare_directories,
        is_of_attempts,
        refuse_manifests,
        require_shared_options,
    )
    from paritrace.cli.compare_sessions import are_sessions, compare_two_sessions, require_session_options
    from paritrace.cli.compare_traces import are_traces, compare_traces, require_trace_options
    from paritrace.cli.selections import parse_ranks, parse_steps
    from paritrace.compare.folds_dims import parse_dims
    from paritrace.compare.masks import parse_mask
    from paritrace.compare.resume_boundary import parse_resume
    from paritrace.compare.settings import Settings

    output_to = Output(path=output, formats=formats, as_json=as_json)
    refuse_manifests(base, cand)
    if is_of_attempts(base, cand):
        require_shared_options(click.get_current_context())
        return compare_directories(base, cand, Asked(repeats, output_to, exit_code and not exit_zero))
    if are_traces(base, cand):
        require_trace_options(click.get_current_context())
        return compare_traces(base, cand, output_to, exit_code=exit_code and not exit_zero)
    if are_sessions(base, cand):
        require_session_options(click.get_current_context())
        return compare_two_sessions(base, cand, output_to, exit_code=exit_code and not exit_zero)
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
    require_a_place(output_to)
    return _compared((base, cand), settings, judges, Engine(engine, workers), (output_to, asked))


def read_maps(maps: Sequence[str]) -> "tuple[Renaming, ...]":
    """The maps that were given as A=B, and the accepted ones of files.

    Raises:
        RequestError: Refused: `bad_map`, `bad_name_map`, `conflicting_maps`.
        HostError: Refused: a file cannot be read.
    """
    from paritrace.compare.name_map_file import accepted_maps
    from paritrace.compare.renamings import parse_maps, without_conflicts
    from paritrace.files import LOCAL

    given = parse_maps([text for text in maps if "=" in text])
    of_files = [accepted_maps(LOCAL.read(Path(text)), name=text) for text in maps if "=" not in text]
    return without_conflicts([*given, *(rule for rules in of_files for rule in rules)])


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
    paths: tuple[Path, Path],
    settings: "Settings",
    judges: Judges,
    engine: Engine,
    wanted: tuple[Output, Judgement],
) -> ExitStatus:
    from paritrace.compare.engine import compare as compare_runs
    from paritrace.compare.repeats_joined import with_repeats
    from paritrace.compare.resume_joined import resumed
    from paritrace.reports.judging_cost import judging_seconds, narrowing_seconds
    from paritrace.reports.keeping import Keeping
    from paritrace.reports.sources import sources_of
    from paritrace.runs.reading import open_run

    base, cand = paths
    output, asked = wanted
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
            runs=(baseline, candidate),
            allowed=allowed_by(asked),
        )
        stage("writing the result")
        status = status_of_comparison(result, asked)
        deliver(keeping, output, status=status)
    return status


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
