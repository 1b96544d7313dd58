"""The action `narrow`: both runs again, finer and finer, until the call where they part stands (AU-9, CP-15)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from paritrace.automation.narrow_records import Ended, Narrowed
from paritrace.automation.protocol.actions.compare import Steps, span_of
from paritrace.automation.protocol.outputs import WORKLOAD_LOG
from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result, Seconds
from paritrace.automation.protocol.workloads import Word

if TYPE_CHECKING:
    from paritrace.automation.narrow_task import Narrowing

FOLDER = "narrowing"  # below the output
MAX_LOG_BYTES = 8 << 20  # of what one capture printed; all of it stays beside that capture


class NarrowRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`baseline`, `candidate`: run directories made by `paritrace run`, or request files. Runs workload code again.

    `timeout_seconds` is for each capture. `steps`, `perturb`, `upcast`, `launcher` and `compiler` as of `paritrace
    narrow`. `dry_run`: check all that can be checked, say what would be done first, and do nothing.
    """

    output: FilePath
    baseline: FilePath
    candidate: FilePath
    timeout_seconds: Seconds
    steps: Steps | None = None
    perturb: Annotated[int, Meta(ge=8)] | None = None
    upcast: Literal["float32", "float64"] | None = None
    launcher: Word | None = None
    compiler: bool = False
    dry_run: bool = False


class FirstRound(Struct, frozen=True, forbid_unknown_fields=True):
    """What a narrowing does first. `commands`: those that run workload code; none where digests can be read at once."""

    question: str
    commands: tuple[tuple[str, ...], ...]


class NarrowResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="narrow"):
    """`narrowed` is the document of `paritrace narrow --json`; null of a dry run."""

    dry_run: bool
    first_round: FirstRound
    narrowed: Narrowed | None


def narrow(request: NarrowRequest, operation: Operation) -> NarrowResult:
    """Narrow a difference down.

    Raises:
        RequestError: Refused: `arguments_unknown`, `launcher_unknown`, `bad_steps`, `output_not_fresh`.
        EvidenceError: Refused: `source_changed`, `no_request`, or a run cannot be read.
        HostError: Failed: `rerun_failed`, `child_too_slow`.
    """
    from paritrace.automation.narrow import Telling
    from paritrace.automation.narrow import narrow as narrowed
    from paritrace.automation.narrow_sides import request_of_side
    from paritrace.automation.narrow_task import Wanted, narrowing_of
    from paritrace.automation.rerun import require_same_sources

    wanted = Wanted(
        between=span_of(request.steps),
        draws=request.perturb,
        upcast=request.upcast or "",
        launcher=request.launcher or "",
        compiler=request.compiler,
        deadline_seconds=request.timeout_seconds,
    )
    folder = Path(request.output).absolute() / FOLDER
    sides = Path(request.baseline).absolute(), Path(request.candidate).absolute()
    task = narrowing_of(*sides, folder=folder, wanted=wanted)
    first = _first_round(task)
    for side in (task.baseline, task.candidate):
        require_same_sources(request_of_side(side))
    if request.dry_run:
        operation.require_fresh(request.output)
        return NarrowResult(dry_run=True, first_round=first, narrowed=None)
    output = operation.claim(request.output)
    try:
        found = narrowed(task, Telling(stage=_nothing, ended=_nothing))
    finally:
        _gather_logs(output)
    return NarrowResult(dry_run=False, first_round=first, narrowed=found)


def _first_round(task: "Narrowing") -> FirstRound:
    """Raises RequestError: Refused: `arguments_unknown`, `launcher_unknown`."""
    from paritrace.automation.narrow_captures import captures_of
    from paritrace.automation.narrow_rules import next_plan
    from paritrace.automation.narrow_sides import request_of_side
    from paritrace.automation.narrow_words import question_of
    from paritrace.automation.rerun import command_of
    from paritrace.runs.request import require_whole

    for side in (task.baseline, task.candidate):
        require_whole(request_of_side(side))
    plan = next_plan(task.asked, [])
    if isinstance(plan, Ended):
        return FirstRound("", ())
    wanted = captures_of(task, plan)
    at = task.folder.path / "round-1"
    commands = (
        command_of(request_of_side(one.side), output=at / one.name, options=one.options.arguments) for one in wanted
    )
    return FirstRound(question_of(plan), tuple(commands))


def _gather_logs(output: Path) -> None:
    """What every capture printed, in their order, in the one log of the operation."""
    from paritrace.files import LOCAL

    logs = sorted(output.glob(f"{FOLDER}/round-*/*.log"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    parts: list[bytes] = []
    for path in logs:
        with LOCAL.opened(path) as opened:
            size = opened.stat().st_size
            parts.append(b"".join(opened.chunks(0, min(size, MAX_LOG_BYTES))))
            if size > MAX_LOG_BYTES:
                parts.append(f"\n[{size - MAX_LOG_BYTES} further bytes: {path}]\n".encode())
    LOCAL.replace(output / WORKLOAD_LOG, b"".join(parts))


def _nothing(_told: object) -> None:
    """Nobody looks on; every round is in the folder as it ends."""


ACTION = Action(
    name="narrow",
    summary="Run both programs again, captured finer where they differ, until a single call stands.",
    request=NarrowRequest,
    result=NarrowResult,
    run=narrow,
    varying=(
        "first_round.commands",
        "narrowed.directory",
        "narrowed.rounds",
        "narrowed.seconds",
        "narrowed.num_bytes",
    ),
    writes=True,
)
