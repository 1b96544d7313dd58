"""`paritrace run`: captures a script or module into a run directory and returns its own exit status (CA-1, SU-3)."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from paritrace.cli.output import note
from paritrace.cli.own_status import OwnStatusCommand
from paritrace.cli.selections import parse_ranks
from paritrace.cli.store_options import publishes, store_options
from paritrace.errors import OUR_FAILURE, ParitraceError, RequestError

if TYPE_CHECKING:
    from paritrace.capture.estimate import Estimate
    from paritrace.capture.launch import Target
    from paritrace.capture.session import Capture, StagedRank
    from paritrace.capture.settings import CaptureSettings
    from paritrace.evidence.replays import ReplayRequest
    from paritrace.runs.own_record import OwnRecord

LEVELS = ("digest", "module", "callsite", "op")


@click.command(
    cls=OwnStatusCommand, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="RUN", help="The new run directory.")
@click.option("-m", "--module", is_flag=True, help="The first argument names a module, as with `python -m`.")
@click.option(
    "--launcher",
    metavar="COMMAND",
    help='Start SCRIPT through this launcher, captured on each rank: "torchrun --nproc-per-node 2".',
)
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(LEVELS),
    help="What to record, repeatable: digest (always on), module, callsite, op [default: module].",
)
@click.option(
    "--callsite-files",
    multiple=True,
    metavar="P",
    help="Record the calls of these files too at level callsite: transformers/models/llama/*.",
)
@click.option("--steps", metavar="A:B", help="Steps at which more than digest is recorded, half-open [default: 0:3].")
@click.option("--ranks", metavar="R", default="all", show_default=True, help="Ranks to capture: all, or 0,1.")
@click.option(
    "--mesh", metavar="M", help="What the ranks mean, last dimension fastest: dp=2,tp=4 [default: torch's own]."
)
@click.option(
    "--select", multiple=True, metavar="P", help="Record only these: PATTERN of a module, file:P, function:P."
)
@click.option(
    "--rows",
    multiple=True,
    metavar="P",
    help="Keep outputs of modules like P token by token, where the script calls rows().",
)
@click.option("--exclude", multiple=True, metavar="P", help="Leave these out; patterns as for --select.")
@click.option(
    "--regions",
    envvar=["PARITRACE_REGIONS", "PARITRACE_RUN_REGIONS"],
    type=int,
    default=4,
    show_default=True,
    help="Regions of a tensor with fingerprints of their own.",
)
@click.option("--statistics", is_flag=True, help="Moments and counts at level op too.")
@click.option(
    "--max-bytes", default="2GiB", show_default=True, help="Size of the journal; what it leaves out is counted."
)
@click.option(
    "--dump",
    multiple=True,
    metavar="P",
    help="Keep the inputs and outputs of these calls whole; patterns as for --select.",
)
@click.option(
    "--golden",
    multiple=True,
    metavar="MODULE",
    help="Keep calls of these modules so that they can be replayed: inputs, weights, generators, results.",
)
@click.option(
    "--dump-bytes",
    default="1GiB",
    show_default=True,
    help="Size of the tensors kept whole; what it leaves out is counted.",
)
@click.option(
    "--black-box",
    is_flag=True,
    help="Keep level module of the last 20 steps in memory, written on NaN, an outlier, a crash, SIGTERM or a request.",
)
@click.option(
    "--budget",
    metavar="P%",
    help="The most that observing may add to a step's own time; a level that costs more is given up, and says so.",
)
@click.option("--estimate", is_flag=True, help="Run three steps, say what a capture would cost, and end.")
@click.option(
    "--perturb",
    type=int,
    metavar="K",
    help="Run K times more, results moved by a unit in the last place: what round-off explains (8 or more).",
)
@click.option("--perturb-seed", type=click.IntRange(min=1), hidden=True, help="This run is one of those.")
@click.option(
    "--upcast",
    type=click.Choice(["float32", "float64"]),
    help="Run in this precision: parameters, buffers and what operators make are lifted; the run says what was not.",
)
@click.option(
    "--deterministic",
    envvar=["PARITRACE_DETERMINISTIC", "PARITRACE_RUN_DETERMINISTIC"],
    is_flag=True,
    help="Set torch's determinism switches, each recorded. Never seeds.",
)
@click.option("--eager", is_flag=True, help="Switch torch.compile off for this run (recorded).")
@click.option(
    "--drop", is_flag=True, help="Drop records when the disk is slower than the workload, instead of waiting."
)
@click.option("--no-sources", is_flag=True, help="Keep no text of source files.")
@click.option("--no-diff", is_flag=True, help="Keep no git diff.")
@click.option("--no-argv", is_flag=True, help="Keep no command line.")
@click.option("--title", default="", help="A title for people.")
@click.option("--tag", "tags", multiple=True, help="A tag, repeatable.")
@store_options
@click.option("--local-rank-argument", is_flag=True, hidden=True, help="Give SCRIPT --local_rank=N, as DeepSpeed does.")
@click.option("--launched-by", hidden=True, help="The --launcher that started this rank, for the run's own record.")
@click.option("--of-draws", type=int, hidden=True, help="The --perturb that started this run, for its own record.")
@click.option("--replay", type=click.Path(path_type=Path), hidden=True, help="Replay the calls that this file names.")
@click.argument("workload", nargs=-1, type=click.UNPROCESSED, required=True, metavar="SCRIPT|MODULE [ARG...]")
@click.pass_context
def run(
    ctx: click.Context, /, output: Path | None, module: bool, ranks: str, workload: tuple[str, ...], **options: object
) -> None:
    """Capture SCRIPT (or with -m MODULE) while it runs; its output and exit status are its own.

    Works as the inner command of a launcher, `torchrun … -m paritrace run -o RUN train.py`, and starts one with
    --launcher.
    """
    from paritrace.capture.session import without_capture
    from paritrace.cli.run_replay import read_request

    try:
        own = _with_local_rank(workload) if options["local_rank_argument"] else workload
        target = _find(own, module=module)
        chosen = parse_ranks(ranks)
        settings = None if without_capture() else _settings(options, ranks=chosen)
        if settings is not None and publishes(options):
            ctx.exit(_stored(ctx, output))
        if options["perturb"] is not None:
            ctx.exit(_with_draws(ctx, int(str(options["perturb"])), output, capture=settings is not None))
        if options["launcher"]:
            ctx.exit(_launched(ctx, str(options["launcher"]), output, capture=settings is not None))
        replay = None if options["replay"] is None else read_request(Path(str(options["replay"])))
        capture = None
        if settings is not None and _wanted(chosen):
            capture = _begin(ctx, output, target, settings)
    except ParitraceError as error:
        note(f"{error.outcome.value}: {error.message} [{error.code}]")
        note(f"    fix: {error.fix}")
        ctx.exit(OUR_FAILURE)
    ctx.exit(_run(target, capture, estimate=bool(options["estimate"]), replay=replay))


def _stored(ctx: click.Context, output: Path | None) -> int:
    """Start the run with its ranks writing to staging, and publish them meanwhile."""
    from paritrace.cli.run_stored import run_stored

    if output is None:
        raise _no_output()
    return run_stored(ctx, output)


def _launched(ctx: click.Context, launcher: str, output: Path | None, *, capture: bool) -> int:
    """Start the launcher; what can be refused was refused before a rank begins."""
    from paritrace.cli.run_launcher import launch

    if output is None and capture:
        raise _no_output()
    return launch(ctx, launcher, capture=capture)


def _with_draws(ctx: click.Context, num_draws: int, output: Path | None, *, capture: bool) -> int:
    from paritrace.cli.run_perturbed import run_with_draws

    if output is None:
        raise _no_output()
    return run_with_draws(ctx, num_draws, output, capture=capture)


def _with_local_rank(workload: tuple[str, ...]) -> tuple[str, ...]:
    """The workload with the argument that DeepSpeed puts before its own, by the variable that it sets as well."""
    name, *arguments = workload
    number = os.environ.get("LOCAL_RANK")
    return workload if number is None else (name, f"--local_rank={number}", *arguments)


def _no_output() -> RequestError:
    return RequestError("no run directory", code="no_output", fix="give one: paritrace run -o RUN train.py")


def _find(workload: tuple[str, ...], *, module: bool) -> Target:
    from paritrace.capture.launch import find_module, find_script

    name, *arguments = workload
    if name.startswith("-"):
        raise RequestError(f"no such option: {name}", code="usage", fix="see `paritrace run --help`")
    return find_module(name, tuple(arguments)) if module else find_script(name, tuple(arguments))


def _settings(options: dict[str, object], *, ranks: tuple[int, ...] | None) -> CaptureSettings:
    from paritrace.capture.declared_mesh import parse_mesh
    from paritrace.capture.settings import (
        CaptureSettings,
        QueueFull,
        Selection,
        parse_budget,
        parse_bytes,
        parse_levels,
        parse_steps,
    )

    steps = options["steps"]
    estimate = bool(options["estimate"])
    span = parse_steps(str(steps)) if steps is not None else CaptureSettings.steps
    return CaptureSettings(
        levels=parse_levels(_texts(options["levels"])),
        steps=(1, 2) if estimate else span,
        declared_steps=steps is not None and not estimate,
        regions=int(str(options["regions"])),
        statistics=bool(options["statistics"]),
        max_bytes=parse_bytes(str(options["max_bytes"])),
        queue_full=QueueFull.DROP if options["drop"] else QueueFull.BLOCK,
        selection=Selection(select=_texts(options["select"]), exclude=_texts(options["exclude"])),
        dump=Selection(select=() if estimate else _texts(options["dump"])),
        golden=() if estimate else _texts(options["golden"]),
        dump_bytes=parse_bytes(str(options["dump_bytes"])),
        callsite_files=_texts(options["callsite_files"]),
        sources=not options["no_sources"],
        diff=not options["no_diff"],
        argv=not options["no_argv"],
        deterministic=bool(options["deterministic"]),
        eager=bool(options["eager"]),
        black_box=bool(options["black_box"]) and not estimate,
        budget=None if options["budget"] is None or estimate else parse_budget(str(options["budget"])),
        mesh=parse_mesh(str(options["mesh"])) if options["mesh"] is not None else (),
        perturb_seed=int(str(options["perturb_seed"] or 0)),
        rows=_texts(options["rows"]),
        upcast=str(options["upcast"] or ""),
        title=str(options["title"]),
        tags=_texts(options["tags"]),
        ranks=ranks,
    )


def _begin(ctx: click.Context, output: Path | None, target: Target, settings: CaptureSettings) -> Capture:
    from paritrace.capture.api import set_current
    from paritrace.capture.session import Workload, begin
    from paritrace.capture.sites import workload_root
    from paritrace.cli.run_request import request_record

    if output is None:
        raise _no_output()
    root = workload_root(target.path, imported_from=Path(target.search_path))
    asked = cast(tuple[str, ...], ctx.params["workload"])
    request = request_record(ctx, asked, root=root, main=target.path, argv=settings.argv)
    own = Workload(root=root, main=target.path, argv=target.argv, request=request)
    if ctx.params["staged_in"] is None:
        capture = begin(output, settings, workload=own)
    else:
        capture = begin(_rank_dir(ctx), settings, workload=own, staged=_staged_rank(ctx))
    set_current(capture)
    return capture


def _rank_dir(ctx: click.Context) -> Path:
    from paritrace.process.identity import own_identity
    from paritrace.runs.launch import launch_of

    return Path(ctx.params["staged_in"]) / f"rank-{launch_of(os.environ, process=own_identity()).rank}"


def _staged_rank(ctx: click.Context) -> StagedRank:
    from paritrace.capture.session import StagedRank

    return StagedRank(run_id=str(ctx.params["run_id"]), node_id=str(ctx.params["node_id"]))


def _run(target: Target, capture: Capture | None, *, estimate: bool, replay: ReplayRequest | None) -> int:
    from paritrace.capture import launch

    if capture is None:
        return launch.run(target)
    if capture.callsites is not None:
        target = capture.callsites.main(target)
    ending = _Ending(capture, _own_record(capture, target))
    atexit.register(ending)  # runs after the workload's own exit callbacks: registered first, called last
    if estimate:
        from paritrace.capture.estimate import Estimate

        ending.estimate = Estimate(capture.recorder, say=note)
        ending.estimate.install()
    if replay is not None:
        from paritrace.cli.run_replay import attach

        attach(capture, replay, end=ending.stopped)
    ending.status = launch.run(target, failing=ending.failing)
    return ending.status


def _own_record(capture: Capture, target: Target) -> OwnRecord:
    """Begin the record of this launch; storage that fails is told at the end and changes nothing (RR-4).

    A rank in staging writes it into its own directory there, and it is published with the rest of that.
    """
    from paritrace.runs.own_record import OwnRecord

    record = OwnRecord(capture.session, name=str(target.path))
    record.begin()
    return record


class _Ending:
    """Ends the capture when the interpreter ends, and says on stderr what was captured."""

    def __init__(self, capture: Capture, record: OwnRecord) -> None:
        self._capture = capture
        self._record = record
        self._process = os.getpid()
        self.status: int | None = None
        self.estimate: Estimate | None = None

    def stopped(self) -> None:
        """All that was wanted of the workload is there: its capture ends as one that was carried through."""
        self.status = 0
        self()

    def failing(self, what: str) -> None:
        """The workload fails: its black box is written before anything else can go wrong."""
        from paritrace.evidence.blackbox import Cause

        self._capture.ends_early(Cause.CRASH, what)

    def __call__(self) -> None:
        from paritrace.runs.envelope import SessionStatus

        if os.getpid() != self._process:  # a forked child that ends by itself: the capture is its parent's
            return
        if self.estimate is not None:
            self.estimate.workload_ended()
        capture = self._capture
        self._record.end(self.status)
        interrupted = self.status is None or self.status == 130
        capture.end(
            SessionStatus.INTERRUPTED if interrupted else SessionStatus.COMPLETED,
            metadata={"exit_status": "unknown" if self.status is None else str(self.status)},
        )
        if capture.failure is not None:
            note(f"{capture.failure.outcome.value}: {capture.failure.message} [{capture.failure.code}]")
            note(f"    fix: {capture.failure.fix}; the workload was not disturbed, the run is incomplete")
        trouble = self._record.record.trouble
        if trouble is not None:
            note(f"{trouble.outcome.value}: {trouble.message} [{trouble.code}]")
            note(f"    fix: {trouble.fix}; the workload was not disturbed, its run record is incomplete")
        if self.estimate is not None:
            self.estimate.close()
        note(f"paritrace: {capture.summary} -> {capture.session.run_dir}")
        sys.stderr.flush()


def _wanted(ranks: tuple[int, ...] | None) -> bool:
    """Whether this process's rank is to be captured."""
    if ranks is None:
        return True
    from paritrace.process.identity import own_identity
    from paritrace.runs.launch import launch_of

    return launch_of(os.environ, process=own_identity()).rank in ranks


def _texts(value: object) -> tuple[str, ...]:
    """The values of a repeatable option, which click gives as a tuple."""
    values = cast(tuple[object, ...], value)
    return tuple(str(item) for item in values)
