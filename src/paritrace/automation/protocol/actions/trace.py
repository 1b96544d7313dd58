"""The action `trace`: capture a workload by its plan (AU-6, AU-19, CA-11)."""

from pathlib import Path

from msgspec.structs import replace

from paritrace.automation.protocol import capturing
from paritrace.automation.protocol.actions.discover import capture_fields, require_steps
from paritrace.automation.protocol.actions.prepare import (
    read_sources,
    require_planned,
    require_same_workload,
)
from paritrace.automation.protocol.captures import DiscoverResult, PrepareResult, TraceResult
from paritrace.automation.protocol.outputs import WORKLOAD_LOG
from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Seconds
from paritrace.automation.protocol.workloads import Policy, Workload
from paritrace.capture.plans import Steps, changed_files, source_changed
from paritrace.errors import EvidenceError, Outcome, RequestError


class TraceRequest(Request, frozen=True, kw_only=True):
    """`expect_steps`: the steps that the run is to reach, in place of the plan's; those it did not are told as coverage
    of the run, not as a failure of the capture (CA-24)."""

    output: FilePath
    local_root: FilePath
    timeout_seconds: Seconds
    workload: Workload
    discovery: DiscoverResult
    plan: PrepareResult
    policy: Policy = Policy()
    expect_steps: Steps | None = None


def trace(request: TraceRequest, operation: Operation) -> TraceResult:
    """Run the workload with the planned call sites recorded."""
    workload, prepared, local_root = request.workload, request.plan, Path(request.local_root)
    place = require_same_workload(workload, prepared.cwd, prepared.script, prepared.checkout)
    _require_one_origin(request)
    if request.expect_steps is not None:
        require_steps(request.expect_steps)
    plan = prepared.plan
    require_planned(plan, read_sources(plan, place.root))
    capturing.require_apart(Path(request.output), local_root)
    deterministic = capturing.is_deterministic(workload, request.policy)
    output = operation.claim(request.output)
    order = replace(
        capturing.new_order(place, workload, action="trace", request_sha256=operation.request_sha256, output=output),
        local_root=str(local_root),
        deterministic=deterministic,
        steps=plan.steps if request.expect_steps is None else request.expect_steps,
        declared_steps=request.expect_steps is not None,
        regions=plan.regions,
        plan=plan,
    )
    done = capturing.capture(order, workload, log=WORKLOAD_LOG, timeout_seconds=request.timeout_seconds)
    changed = changed_files(plan, read_sources(plan, place.root))
    if changed:
        raise _edited(changed)
    loaded = {file: digest for one in done.completions.values() for file, digest in sorted(one.loaded.items())}
    return TraceResult(
        **capture_fields(done, place, workload, deterministic=deterministic),
        plan=prepared.digest,
        coverage=plan.coverage,
        sources=loaded,
        not_loaded=tuple(one.file for one in plan.files if one.file not in loaded),
    )


def _edited(changed: dict[str, str]) -> EvidenceError:
    error = source_changed(changed, when="is, since the capture began,")
    error.outcome = Outcome.FAILED
    return error


def _require_one_origin(request: TraceRequest) -> None:
    if request.plan.discovery != request.discovery.digest:
        raise RequestError(
            "the plan was not made of the discovery that is given with it",
            code="other_workload",
            fix="give the discovery that `prepare` was given",
        )


ACTION = Action(
    name="trace",
    summary="Run a workload with the planned call sites recorded on every rank.",
    request=TraceRequest,
    result=TraceResult,
    run=trace,
    varying=("run", "run_id", "plan", "ranks.node_id", "ranks.session_id", "ranks.bundles"),
    writes=True,
)
