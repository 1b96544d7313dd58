"""The action `prepare`: from what was discovered to a configuration and a plan (AU-5, CA-11, CA-25)."""

from pathlib import Path

from paritrace.automation.plan_configuration import DEFAULT, normalised, read_configuration
from paritrace.automation.planning import planned, require_variables
from paritrace.automation.protocol import capturing
from paritrace.automation.protocol.captures import DiscoverResult, PrepareResult
from paritrace.automation.protocol.records import Action, FilePath, Operation, Request
from paritrace.automation.protocol.workloads import Workload
from paritrace.capture.plans import Plan, changed_files, source_changed
from paritrace.errors import RequestError
from paritrace.evidence import codec
from paritrace.files import LOCAL

CONFIGURATION = "configuration.yaml"
PLAN = "plan.json"


class PrepareRequest(Request, frozen=True, kw_only=True):
    """`configuration`: a YAML file of one's own choice; without it all that was observed is planned."""

    output: FilePath
    workload: Workload
    discovery: DiscoverResult
    configuration: FilePath | None = None


def prepare(request: PrepareRequest, operation: Operation) -> PrepareResult:
    """Make a plan of the call sites that were observed."""
    discovery = request.discovery
    place = require_same_workload(request.workload, discovery.cwd, discovery.script, discovery.checkout)
    configuration = DEFAULT
    if request.configuration is not None:
        configuration = read_configuration(LOCAL.read(Path(request.configuration)), name=request.configuration)
    plan = planned(discovery.files, discovery.elsewhere, configuration, main=place.main)
    sources = read_sources(plan, place.root)
    require_planned(plan, sources)
    require_variables(plan, {file: data for file, data in sources.items() if data is not None})
    output = operation.claim(request.output)
    LOCAL.replace(output / CONFIGURATION, normalised(configuration))
    LOCAL.replace(output / PLAN, codec.encode_document(plan))
    return PrepareResult(
        configuration=str(output / CONFIGURATION),
        plan_file=str(output / PLAN),
        discovery=discovery.digest,
        checkout=place.root,
        cwd=place.cwd,
        script=place.script,
        plan=plan,
    )


def require_same_workload(workload: Workload, cwd: str, script: str, checkout: str) -> capturing.Place:
    """Refuse a result of another workload; arguments and environment may differ.

    Raises:
        RequestError: Refused: `other_workload`, and as `place_of` says.
    """
    place = capturing.place_of(workload)
    if (place.cwd, place.script, place.root) != (cwd, script, checkout):
        raise RequestError(
            f"the workload is {place.script} in {place.cwd}, the result given with it is of {script} in {cwd}",
            code="other_workload",
            fix="give the results of this workload, or name the workload that they are of",
        )
    return place


def read_sources(plan: Plan, root: str) -> dict[str, bytes | None]:
    """The planned files as they are now; None for one that is not there."""
    return {one.file: LOCAL.read_if_present(Path(root) / one.file) for one in plan.files}


def require_planned(plan: Plan, sources: dict[str, bytes | None]) -> None:
    """Refuse sources that are not the planned ones. Raises `EvidenceError`, Refused: `source_changed`."""
    changed = changed_files(plan, sources)
    if changed:
        raise source_changed(changed, when="is")


ACTION = Action(
    name="prepare",
    summary="Turn a discovery into a configuration and a plan with the digest of every source.",
    request=PrepareRequest,
    result=PrepareResult,
    run=prepare,
    varying=("configuration", "plan_file", "discovery"),
    writes=True,
)
