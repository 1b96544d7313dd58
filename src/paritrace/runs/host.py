"""A runtime: one host process, one exchange at a time, a bound on every wait, records where asked for (RR-6)."""

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import ParitraceError, RequestError
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process import adapter_process
from paritrace.process.adapter_process import AdapterProcess, HostEnded, TimeIsUp
from paritrace.process.adapter_protocol import PROTOCOL, PROTOCOL_VERSION, Farewell, Hello, Ready
from paritrace.process.observing import TreeObserver, observed_host, this_machine
from paritrace.process.own_cgroup import OwnCgroup
from paritrace.process.resources import (
    ResourceObservationUnavailable,
    ResourceObservationUnsupported,
    ResourceSnapshot,
)
from paritrace.runs.adapters import (
    Adapter,
    HostState,
    HttpAdapter,
    InvocationError,
    NativePlugin,
    ProcessAdapter,
    PythonAdapter,
    Result,
    Stage,
)
from paritrace.runs.invocation_request import Request, check_request
from paritrace.runs.invoking import Invocations, unavailable
from paritrace.runs.recorder import Recorder
from paritrace.runs.recording import new_id

START_SECONDS = 60.0  # an adapter that imports a large framework takes tens of seconds on a busy machine
QUEUE_SECONDS = 3600.0  # how long a caller waits for another one's invocation, whose own limit may be long
LOCAL_ENVIRONMENT = "local"


class Host:
    """Runs one adapter. Use it as a context manager; threads may share it, and take turns.

    Args:
        adapter: a program or a Python function; others are refused by name where a recorder is given.
        artifacts: the run directory for invocation files and records. It alone records nothing.
        recorder: records every invocation; needs `artifacts`.
        environment: where the adapter runs; only `local` can be recorded.

    Raises:
        RequestError: Refused, at planning: `no_artifact_root`, `not_local`, `unsupported_adapter`.
    """

    def __init__(
        self,
        adapter: Adapter,
        *,
        artifacts: Path | None = None,
        recorder: Recorder | None = None,
        environment: str = LOCAL_ENVIRONMENT,
        clock: Clock = SYSTEM,
    ) -> None:
        self._adapter = _planned(adapter, artifacts, recorder, environment)
        self.runtime_id = new_id("runtime", clock=clock)
        self._recorder = recorder
        self._clock = clock
        self._lock = threading.Lock()
        self._state = HostState.STARTING
        self._process: AdapterProcess | None = None
        self._own: OwnCgroup | None = None
        self._observer: TreeObserver | None = None
        self._invocations = Invocations(self.runtime_id, self._adapter, artifacts, recorder, clock=clock)

    @property
    def state(self) -> HostState:
        """What the host is doing; read without waiting for an invocation."""
        return self._state

    def start(self, *, within_seconds: float = START_SECONDS) -> None:
        """Start the host and wait until it is ready.

        Raises:
            HostError: Refused, `host_unavailable`: it cannot be started.
            InvocationError: Failed, `host_unavailable`: it was not ready in time, or ended before.
            EvidenceError: Failed, `protocol_error`.
        """
        environment = {**os.environ, **self._adapter.environment}
        self._own = None if self._recorder is None else self._recorder.own_cgroup(self.runtime_id)
        join = None if self._own is None else self._own.join
        self._process = adapter_process.start(self._adapter.argv, environment=environment, join=join)
        try:
            self._observer = TreeObserver(
                this_machine(), observed_host(this_machine(), self._process.pid, subject=self.runtime_id)
            )
        except (ResourceObservationUnavailable, ResourceObservationUnsupported):
            self._observer = None  # a snapshot is refused then, by the same error
        hello = Hello(protocol=PROTOCOL, version=PROTOCOL_VERSION, runtime_id=self.runtime_id)
        try:
            answer = self._process.exchange(hello, until=time.monotonic() + within_seconds)
            if not isinstance(answer, Ready):
                raise unavailable("the adapter did not say that it is ready", Stage.START)
        except (TimeIsUp, HostEnded) as error:
            self.stop()
            ended = "ended before it was ready" if isinstance(error, HostEnded) else "was not ready"
            raise unavailable(f"the adapter {ended}; it had {within_seconds:.0f} s", Stage.START) from None
        except ParitraceError:
            self.stop()
            raise
        self._invocations.adapter = answer
        self._state = HostState.READY

    def invoke(
        self,
        request_id: str | None = None,
        *,
        input: Any = None,  # noqa: A002  the word of the request
        context: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
        timeout_seconds: float | None = None,
    ) -> Result:
        """Send one request and return its result; waits for the turn of other callers, at most an hour.

        Raises:
            RequestError: Refused, nothing was sent: `bad_id`, `bad_invocation`.
            InvocationError: Failed: `host_busy` and `host_unavailable` (nothing was sent), `host_timeout` (the host was
                ended), `host_crashed`, `adapter_raised`, `artifact_write_failed`, `protocol_error`.
        """
        request = Request(
            request_id=request_id or new_id("request", clock=self._clock),
            input=input,
            context=dict(context or {}),
            overrides=dict(overrides or {}),
            timeout_seconds=timeout_seconds,
        )
        check_request(request)
        if not self._lock.acquire(timeout=QUEUE_SECONDS):
            raise InvocationError(
                f"other invocations kept the host for {QUEUE_SECONDS:.0f} s",
                code="host_busy",
                fix="give invocations a timeout, or use one host for each caller",
                stage=Stage.INVOKE,
                retryable=True,
            )
        try:
            if self._process is None or self._state is not HostState.READY:
                raise unavailable(f"the host is {self._state.value}", Stage.INVOKE)
            self._state = HostState.BUSY
            try:
                pending = self._invocations.exchange(request, self._process, own=self._own, snapshot=self._final)
            except BaseException:  # Ctrl-C in the middle: what it answers next would be taken for another one's answer
                self._state = HostState.GONE
                raise
            self._state = HostState.READY if pending.host_lives else HostState.GONE
        finally:
            self._lock.release()
        return self._invocations.settle(pending)

    def resource_snapshot(self) -> ResourceSnapshot:
        """Read the host's tree now; never waits for an invocation (RS-1).

        Raises:
            ResourceObservationUnavailable: Refused: not started, stopping, gone, or not readable as a whole.
            ResourceObservationUnsupported: Refused: an adapter or a platform without a process to look at.
        """
        if isinstance(self._adapter, HttpAdapter | NativePlugin):
            raise ResourceObservationUnsupported(Gap(ResourceGap.UNSUPPORTED_ADAPTER, self._adapter.kind.value))
        if self._process is None or self._observer is None:
            raise ResourceObservationUnavailable(Gap(ResourceGap.NOT_STARTED))
        if self._state in (HostState.STOPPING, HostState.GONE):
            raise ResourceObservationUnavailable(Gap(ResourceGap.HOST_EXITED, f"the host is {self._state.value}"))
        return self._observer.snapshot()

    def stop(self) -> None:
        """End the host: a word, 2 s, signals, 2 s more, SIGKILL. Ending twice is allowed."""
        process, self._process = self._process, None
        if process is not None:
            self._state = HostState.STOPPING
            process.end(sent=lambda _number, _to: None, farewell=Farewell())
        self._state = HostState.GONE
        own, self._own = self._own, None
        if own is not None:
            own.remove()
        self._invocations.close()

    def _final(self) -> ResourceSnapshot | Gap[ResourceGap]:
        return Gap(ResourceGap.NOT_STARTED) if self._observer is None else self._observer.final()

    def __enter__(self) -> "Host":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _planned(
    adapter: Adapter, artifacts: Path | None, recorder: Recorder | None, environment: str
) -> ProcessAdapter | PythonAdapter:
    if isinstance(adapter, HttpAdapter | NativePlugin):
        raise RequestError(
            f"an adapter of kind {adapter.kind.value} has no process of ours to run, observe or record",
            code="unsupported_adapter",
            fix="use a process or a Python adapter",
        )
    if not adapter.argv:
        raise RequestError(
            "a process adapter without a program", code="unsupported_adapter", fix="give ProcessAdapter a program"
        )
    if recorder is not None and artifacts is None:
        raise RequestError(
            "a recorder without an artifact root has no place for its records",
            code="no_artifact_root",
            fix="give Host(artifacts=RUN), a run directory",
        )
    if recorder is not None and environment != LOCAL_ENVIRONMENT:
        raise RequestError(
            f"an adapter in the environment {environment!r} cannot be recorded: its processes are not of this machine",
            code="not_local",
            fix="record on the machine where it runs, or run without a recorder",
        )
    return adapter
