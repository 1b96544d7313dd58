"""The action `capabilities`: what can be asked, and what this installation can observe (AU-3, AU-17, AU-21)."""

import platform
from enum import StrEnum

from msgspec import Struct

from paritrace import __version__
from paritrace.automation.probes.installation import installed_version
from paritrace.automation.probes.machine import probe_machine
from paritrace.automation.probes.probe import Availability, Probe
from paritrace.automation.protocol.records import Action, Operation, Result
from paritrace.automation.protocol.schemas import request_schema, result_schema, schema_file, schema_sha256

LIMITS = (
    "no budget of input and output for a whole cluster: pace is set for each node",
    "coverage of training steps is what was observed and declared, not what a step means",
    "ranks are paired by their number; another pairing needs an alignment map",
    "nothing is remembered between operations: every request is checked from the start",
)
SAFETY = (
    "for trusted local operators: actions that run a workload execute its code with the permissions of the caller; "
    "this is no sandbox and no network service"
)


class State(StrEnum):
    ENABLED = "enabled"  # works here
    SUPPORTED = "supported"  # what it needs of Python is installed, what it needs of the machine is not there
    MISSING = "missing"  # a package is not installed


class Observable(Struct, frozen=True, forbid_unknown_fields=True):
    """Something to observe or use. `versions`: of the packages behind it; `reason`: why it is not enabled."""

    name: str
    state: State
    versions: dict[str, str]
    reason: str


class ActionFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """One action, with the published schemas by file name and SHA-256; null where it takes no request.

    `varying`: fields of its result that may differ where request and evidence are the same. `writes`: whether it makes
    the directory `output`.
    """

    name: str
    summary: str
    request_schema: str | None
    request_schema_sha256: str | None
    result_schema: str
    result_schema_sha256: str
    varying: tuple[str, ...]
    writes: bool


class CapabilitiesResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="capabilities"):
    """`fingerprint_schemes`, `engines`: names. `observing`: what this installation and machine allow."""

    paritrace_version: str
    python_version: str
    actions: tuple[ActionFacts, ...]
    observing: tuple[Observable, ...]
    fingerprint_schemes: tuple[str, ...]
    engines: tuple[Observable, ...]
    limits: tuple[str, ...]
    safety: str


def capabilities(_request: None, _operation: Operation) -> CapabilitiesResult:
    """Say what can be asked here; no framework is imported to find out."""
    from paritrace.automation.protocol.table import all_actions
    from paritrace.evidence.fingerprints import Scheme

    return CapabilitiesResult(
        paritrace_version=__version__,
        python_version=platform.python_version(),
        actions=tuple(_facts(action) for action in all_actions()),
        observing=_observing(),
        fingerprint_schemes=tuple(Scheme),
        engines=(
            Observable("local", State.ENABLED, {}, ""),
            _of_packages("ray", "ray"),
        ),
        limits=LIMITS,
        safety=SAFETY,
    )


def _observing() -> tuple[Observable, ...]:
    accelerator = next(probe for probe in probe_machine() if probe.id == "accelerator")
    return (
        _of_packages("torch", "torch"),
        observable("cuda", _versions("torch"), accelerator=accelerator),
        observable("triton", _versions("torch", "triton"), accelerator=accelerator),
        _of_packages("transformers", "transformers", "accelerate"),
        _of_packages("lightning", "lightning"),
        _of_packages("attempts", "PyYAML", "scipy"),
        _of_packages("s3", "boto3"),
    )


def _of_packages(name: str, *packages: str) -> Observable:
    return observable(name, _versions(*packages))


def _versions(*packages: str) -> dict[str, str | None]:
    return {package: installed_version(package) for package in packages}


def observable(name: str, versions: dict[str, str | None], *, accelerator: Probe | None = None) -> Observable:
    """Return what the packages of something, each with its version or None, and an accelerator it needs come to."""
    found = {package: version for package, version in versions.items() if version is not None}
    absent = [package for package in versions if package not in found]
    if absent:
        return Observable(name, State.MISSING, found, f"not installed: {', '.join(absent)}")
    if accelerator is None:
        return Observable(name, State.ENABLED, found, "")
    if found["torch"].endswith("+cpu"):
        return Observable(name, State.MISSING, found, "torch is installed in its build for processors alone")
    if accelerator.status is not Availability.AVAILABLE:
        return Observable(name, State.SUPPORTED, found, accelerator.reason)
    return Observable(name, State.ENABLED, found, "")


def _facts(action: Action) -> ActionFacts:
    request = request_schema(action)
    return ActionFacts(
        name=action.name,
        summary=action.summary,
        request_schema=None if request is None else schema_file(action, "request"),
        request_schema_sha256=None if request is None else schema_sha256(request),
        result_schema=schema_file(action, "result"),
        result_schema_sha256=schema_sha256(result_schema(action)),
        varying=action.varying,
        writes=action.writes,
    )


ACTION = Action(
    name="capabilities",
    summary="Say which actions there are and what this installation can observe.",
    request=None,
    result=CapabilitiesResult,
    run=capabilities,
)
