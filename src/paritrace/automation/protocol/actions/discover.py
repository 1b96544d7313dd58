"""The action `discover`: which call sites of a workload carry tensors (AU-4, CA-11)."""

from pathlib import Path
from typing import TypedDict

from msgspec.structs import replace

from paritrace.automation.observed_sites import Observing
from paritrace.automation.protocol import capturing
from paritrace.automation.protocol.captures import DiscoverResult, RankFacts
from paritrace.automation.protocol.outputs import WORKLOAD_LOG
from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Seconds
from paritrace.automation.protocol.workloads import Policy, Workload
from paritrace.capture.plans import Steps, source_changed
from paritrace.capture.settings import DEFAULT_STEPS
from paritrace.errors import RequestError
from paritrace.runs.reading import open_run


class DiscoverRequest(Request, frozen=True, kw_only=True):
    """`steps`: the training steps that are looked at."""

    output: FilePath
    local_root: FilePath
    timeout_seconds: Seconds
    workload: Workload
    policy: Policy = Policy()
    steps: Steps = Steps(*DEFAULT_STEPS)


def discover(request: DiscoverRequest, operation: Operation) -> DiscoverResult:
    """Run the workload once and say which of its call sites carried tensors."""
    workload, local_root = request.workload, Path(request.local_root)
    require_steps(request.steps)
    place = capturing.place_of(workload)
    capturing.require_apart(Path(request.output), local_root)
    deterministic = capturing.is_deterministic(workload, request.policy)
    output = operation.claim(request.output)
    order = replace(
        capturing.new_order(place, workload, action="discover", request_sha256=operation.request_sha256, output=output),
        local_root=str(local_root),
        deterministic=deterministic,
        steps=request.steps,
    )
    done = capturing.capture(order, workload, log=WORKLOAD_LOG, timeout_seconds=request.timeout_seconds)
    observing = Observing(place.main)
    with open_run(done.run) as run:
        for session in run.sessions:
            observing.take(session.rank, run.records(session.session_id))
    if observing.unlike:
        raise source_changed(observing.unlike, when="was not the same on all ranks, and so")
    return DiscoverResult(
        **capture_fields(done, place, workload, deterministic=deterministic),
        main=place.main,
        files=observing.files,
        elsewhere={file: why for one in done.completions.values() for file, why in sorted(one.elsewhere.items())},
    )


def require_steps(steps: Steps) -> None:
    """Refuse a span that holds no step. Raises `RequestError`, `bad_steps`."""
    if steps.first >= steps.end:
        raise RequestError(
            f"steps {steps.first} to {steps.end} hold no step", code="bad_steps", fix="give an end beyond the first"
        )


class CaptureFields(TypedDict):
    """The fields of a `CaptureResult`."""

    run: str
    run_id: str
    checkout: str
    cwd: str
    script: str
    deterministic: bool
    environment_names: tuple[str, ...]
    ranks: tuple[RankFacts, ...]


def capture_fields(
    done: capturing.Captured, place: capturing.Place, workload: Workload, *, deterministic: bool
) -> CaptureFields:
    """What every capture's result says; its ranks by number."""
    return CaptureFields(
        run=str(done.run),
        run_id=done.run_id,
        checkout=place.root,
        cwd=place.cwd,
        script=place.script,
        deterministic=deterministic,
        environment_names=tuple(sorted(workload.env)),
        ranks=tuple(
            RankFacts(rank=rank, node_id=one.node_id, session_id=one.session_id, calls=one.calls, bundles=one.bundles)
            for rank, one in sorted(done.completions.items())
        ),
    )


ACTION = Action(
    name="discover",
    summary="Run a workload once and say which of its call sites carry tensors.",
    request=DiscoverRequest,
    result=DiscoverResult,
    run=discover,
    varying=("run", "run_id", "ranks.node_id", "ranks.session_id", "ranks.bundles"),
    writes=True,
)
