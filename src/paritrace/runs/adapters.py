"""What a host runs, what an invocation gives back, and who records it: records of the Host API (RR-6, RR-9)."""

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from paritrace.errors import HostError, Outcome
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.adapter_protocol import Artifact, ReportedUsage, ResultError, ResultStatus
from paritrace.process.resources import ResourceSnapshot
from paritrace.runs.record_lines import AdapterKind


class ProcessAdapter(Struct, frozen=True):
    """A program that speaks the adapter protocol on its standard input and output. `environment` adds to ours."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = {}

    @property
    def kind(self) -> AdapterKind:
        return AdapterKind.PROCESS

    @property
    def argv(self) -> tuple[str, ...]:
        return self.command


class PythonAdapter(Struct, frozen=True):
    """A function `MODULE:FUNCTION`, served by a process of its own. `python`: the interpreter, ours by default."""

    target: str
    python: str = ""
    environment: Mapping[str, str] = {}

    @property
    def kind(self) -> AdapterKind:
        return AdapterKind.PYTHON

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.python or sys.executable, "-m", "paritrace.process.python_adapter", self.target)


class HttpAdapter(Struct, frozen=True):
    """An adapter behind an address: named, so that it can be refused by name (RS-11)."""

    url: str

    @property
    def kind(self) -> AdapterKind:
        return AdapterKind.HTTP


class NativePlugin(Struct, frozen=True):
    """An adapter loaded into this process: named, so that it can be refused by name (RS-11)."""

    path: str

    @property
    def kind(self) -> AdapterKind:
        return AdapterKind.NATIVE_PLUGIN


Adapter = ProcessAdapter | PythonAdapter | HttpAdapter | NativePlugin


class HostState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    STOPPING = "stopping"
    GONE = "gone"


class Stage(StrEnum):
    PLAN = "plan"
    START = "start"
    ARTIFACT = "artifact"
    INVOKE = "invoke"


class Event(Struct, frozen=True):
    """Something that went wrong beside an invocation and changed nothing of it."""

    kind: str
    detail: str


class Result(Struct, frozen=True):
    """What one invocation gave back. `resource_snapshot`: the tree after it; a gap where it could not be read."""

    runtime_id: str
    invocation_id: str
    request_id: str
    status: ResultStatus
    output: Any
    error: ResultError | None
    usage: ReportedUsage | None
    resource_snapshot: ResourceSnapshot | Gap[ResourceGap]
    artifacts: tuple[Artifact, ...] = ()
    events: tuple[Event, ...] = ()


class InvocationError(HostError):
    """An invocation without a result (Failed); then its record is the only evidence, where one was asked for."""

    def __init__(self, message: str, *, code: str, fix: str, stage: Stage, retryable: bool = False) -> None:
        super().__init__(message, code=code, fix=fix, outcome=Outcome.FAILED)
        self.stage = stage
        self.retryable = retryable
        self.events: tuple[Event, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.message, self.code, self.fix, self.stage, self.retryable))


def _rebuild(message: str, code: str, fix: str, stage: Stage, retryable: bool) -> InvocationError:
    return InvocationError(message, code=code, fix=fix, stage=stage, retryable=retryable)
