"""One invocation in its exact order: record, deadline, invocation file, request, facts, end line (RR-3, RR-7)."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from paritrace.clock import Clock, rfc3339
from paritrace.errors import HostError, ParitraceError
from paritrace.evidence import codec
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.files import LOCAL
from paritrace.process.adapter_process import AdapterProcess, HostEnded, TimeIsUp
from paritrace.process.adapter_protocol import Answer, Invoke, Raised, Ready, Reply, ResultStatus
from paritrace.process.own_cgroup import OwnCgroup
from paritrace.process.resources import ResourceSnapshot
from paritrace.process.stop_facts import ExchangeEnd, SentSignal, StopFacts, StopGap, Timer, Wait
from paritrace.runs.adapters import Event, InvocationError, ProcessAdapter, PythonAdapter, Result, Stage
from paritrace.runs.invocation_request import FOREVER_SECONDS, Request
from paritrace.runs.record_ends import RecordedError
from paritrace.runs.record_lines import (
    INVOCATION_FORMAT,
    INVOCATION_NAME,
    VERSION,
    Ids,
    Invocation,
    Names,
    RecordGap,
    given,
)
from paritrace.runs.recorded_session import RecordedSession
from paritrace.runs.recorder import Recorder, Recording
from paritrace.runs.recording import invocation_folder, new_id


class Pending(Struct):
    """An exchange that is over, its host's lock free, and its end line not yet written."""

    ids: Ids
    request: Request
    facts: StopFacts
    began_ns: int
    answer: Reply | None
    error: InvocationError | None
    snapshot: ResourceSnapshot | Gap[ResourceGap]
    recording: Recording | None
    host_lives: bool


class Invocations:
    """All invocations of one runtime; `exchange` runs under the host's lock, `settle` after it."""

    def __init__(
        self,
        runtime_id: str,
        adapter: ProcessAdapter | PythonAdapter,
        artifacts: Path | None,
        recorder: Recorder | None,
        *,
        clock: Clock,
    ) -> None:
        self.adapter: Ready | None = None
        self._runtime_id = runtime_id
        self._kind = adapter.kind
        self._artifacts = artifacts
        self._recorder = recorder
        self._clock = clock
        self._session = _session_of(artifacts, recorder)

    def exchange(
        self,
        request: Request,
        process: AdapterProcess,
        *,
        own: OwnCgroup | None,
        snapshot: Callable[[], ResourceSnapshot | Gap[ResourceGap]],
    ) -> Pending:
        """Do everything that must happen while nobody else uses the host.

        Raises:
            RequestError: Refused, code `bad_id`.
        """
        ids = Ids(self._runtime_id, new_id("invocation", clock=self._clock), request.request_id)
        recording = self._begin(request, ids, process, own)
        sent_at = self._clock.monotonic_ns()
        run = _Exchange(process, request, ids, clock=self._clock)
        try:
            self._write_invocation(request, ids, sent_at)
        except HostError as error:
            run.error = InvocationError(
                f"the invocation file could not be written: {error.message}",
                code="artifact_write_failed",
                fix=error.fix,
                stage=Stage.ARTIFACT,
            )
            run.ended_ns = self._clock.monotonic_ns()
        else:
            run.send()
        if recording is not None:
            recording.read_memory()
        seen = snapshot()
        run.end_host()
        if recording is not None and run.host_ended_ns is not None:
            recording.read_memory()
        return Pending(
            ids, request, run.facts(), sent_at, run.reply, run.error, seen, recording, run.host_ended_ns is None
        )

    def settle(self, pending: Pending) -> Result:
        """Write the end line, register the record, and give back the result or raise."""
        events = self._finish(pending)
        if pending.error is not None:
            pending.error.events = events
            raise pending.error
        reply = pending.answer
        assert reply is not None
        return Result(
            runtime_id=pending.ids.runtime_id,
            invocation_id=pending.ids.invocation_id,
            request_id=pending.ids.request_id,
            status=reply.status,
            output=reply.output,
            error=reply.error,
            usage=reply.usage,
            resource_snapshot=pending.snapshot,
            artifacts=reply.artifacts,
            events=events,
        )

    def close(self) -> None:
        """End the session of the run directory, where there is one."""
        if self._session is not None:
            self._session.close()

    def _begin(self, request: Request, ids: Ids, process: AdapterProcess, own: OwnCgroup | None) -> Recording | None:
        if self._recorder is None or self._artifacts is None:
            return None
        recording = Recording(self._recorder, self._artifacts, ids, host=process.pid, own=own)
        recording.begin(
            self._names(self._recorder),
            context=request.context,
            overrides=request.overrides,
            timeout_seconds=request.timeout_seconds,
        )
        return recording

    def _names(self, recorder: Recorder) -> Names:
        said = self.adapter
        return Names(
            agent=given(recorder.agent),
            harness=given(recorder.harness or (None if said is None else said.harness)),
            adapter=given(None if said is None else said.adapter),
            adapter_kind=self._kind,
            models=recorder.models,
        )

    def _write_invocation(self, request: Request, ids: Ids, began_ns: int) -> None:
        if self._artifacts is None:
            return
        files = LOCAL if self._recorder is None else self._recorder.files
        wall_ns = self._clock.wall_ns()
        limit = request.timeout_seconds
        document = Invocation(
            format=INVOCATION_FORMAT,
            version=VERSION,
            runtime_id=ids.runtime_id,
            invocation_id=ids.invocation_id,
            request_id=ids.request_id,
            adapter=given(None if self.adapter is None else self.adapter.adapter),
            adapter_kind=self._kind,
            started=rfc3339(wall_ns),
            started_monotonic_ns=began_ns,
            deadline=Gap(RecordGap.NO_TIMEOUT) if limit is None else rfc3339(wall_ns + int(limit * 1e9)),
        )
        files.replace(invocation_folder(self._artifacts, ids) / INVOCATION_NAME, codec.encode_document(document))

    def _finish(self, pending: Pending) -> tuple[Event, ...]:
        if pending.recording is None:
            return ()
        error = pending.error
        pending.recording.finish(
            pending.facts,
            began_ns=pending.began_ns,
            error=None if error is None else RecordedError(error.code, error.stage.value, error.retryable),
            usage=None if pending.answer is None else pending.answer.usage,
            resources=pending.snapshot,
        )
        trouble = None if self._session is None else self._session.add(pending.recording.path)
        return pending.recording.events(trouble)


class _Exchange:
    """One request on its way, and what became of it."""

    def __init__(self, process: AdapterProcess, request: Request, ids: Ids, *, clock: Clock) -> None:
        self.reply: Reply | None = None
        self.error: InvocationError | None = None
        self.ended_ns = 0
        self.host_ended_ns: int | None = None
        self._process = process
        self._request = request
        self._ids = ids
        self._clock = clock
        self._set_ns = clock.monotonic_ns()
        self._end = ExchangeEnd.RAISED
        self._wait: Wait | None = None
        self._sent: list[SentSignal] = []

    def send(self) -> None:
        limit = self._request.timeout_seconds
        message = Invoke(
            invocation_id=self._ids.invocation_id,
            request_id=self._ids.request_id,
            input=self._request.input,
            context=self._request.context,
            overrides=self._request.overrides,
            deadline_seconds=limit,
        )
        self._set_ns = self._clock.monotonic_ns()
        try:
            answer = self._process.exchange(message, until=time.monotonic() + (limit or FOREVER_SECONDS))
            self.ended_ns = self._clock.monotonic_ns()
            self._take(answer)
        except TimeIsUp:
            self.ended_ns = self._clock.monotonic_ns()
            self._end = ExchangeEnd.TIMED_OUT
            self.error = _timed_out(limit or FOREVER_SECONDS)
        except HostEnded:
            self.ended_ns = self._clock.monotonic_ns()
            self._wait = self._process.wait_status()
            self._end = ExchangeEnd.RAISED if self._wait is None else ExchangeEnd.HOST_EXITED
            self.error = _crashed(self._wait)
        except ParitraceError as error:
            self.ended_ns = self._clock.monotonic_ns()
            self.error = _protocol_error(error.message)

    def end_host(self) -> None:
        """End a host that is of no more use: timed out, or no longer speaking; one that has ended is noted."""
        if self._wait is None and (self.error is None or self.error.code in _HOST_GOES_ON):
            return
        if self._wait is None:
            self._wait = self._process.end(sent=self._note)
        else:
            self._process.end(sent=self._note)  # what it left of its tree, and our ends of the pipes
        self.host_ended_ns = self._clock.monotonic_ns()

    def facts(self) -> StopFacts:
        limit = self._request.timeout_seconds
        fired = self.ended_ns if self._end is ExchangeEnd.TIMED_OUT else None
        return StopFacts(
            exchange=self._end,
            ended_ns=self.ended_ns,
            wait=self._wait,
            wait_gap=None if self._wait is not None else Gap(StopGap.NOT_REAPED),
            host_ended_ns=self.host_ended_ns,
            timer=None if limit is None else Timer(limit, self._set_ns, fired),
            force_stopped=any(one.signal == signal.SIGKILL for one in self._sent),
            sent=tuple(self._sent),
        )

    def _take(self, answer: Answer) -> None:
        if isinstance(answer, Ready) or answer.invocation_id != self._ids.invocation_id:
            self.error = _protocol_error("the answer is to another request")
        elif isinstance(answer, Raised):
            self.error = InvocationError(
                f"the adapter raised {answer.code}: {answer.message}",
                code="adapter_raised",
                fix="see what the adapter printed on standard error",
                stage=Stage.INVOKE,
                retryable=answer.retryable,
            )
        elif (answer.status is ResultStatus.FAILED) != (answer.error is not None):
            self.error = _protocol_error(
                f"a {answer.status.value} result {'with' if answer.error else 'without'} an error"
            )
        else:
            self.reply = answer
            self._end = _ENDS[answer.status]

    def _note(self, number: int, to: int) -> None:
        why = "grace_over" if number == signal.SIGKILL else "timeout"
        self._sent.append(SentSignal(int(number), to, why, self._clock.monotonic_ns()))


_ENDS = {
    ResultStatus.SUCCEEDED: ExchangeEnd.SUCCEEDED,
    ResultStatus.FAILED: ExchangeEnd.FAILED_RESULT,
    ResultStatus.CANCELLED: ExchangeEnd.CANCELLED,
}
_HOST_GOES_ON = frozenset({"adapter_raised", "artifact_write_failed"})


def unavailable(why: str, stage: Stage) -> InvocationError:
    """There is no host to send a request to."""
    return InvocationError(
        why,
        code="host_unavailable",
        fix="check that it is installed, executable and on PATH; a host that has ended is not used again",
        stage=stage,
        retryable=True,
    )


def _timed_out(seconds: float) -> InvocationError:
    return InvocationError(
        f"the adapter had not answered after {seconds:g} s; the host was ended",
        code="host_timeout",
        fix="give it more time with timeout_seconds, or look at what it waits for",
        stage=Stage.INVOKE,
        retryable=True,
    )


def _crashed(wait: Wait | None) -> InvocationError:
    from paritrace.runs.stop import exit_words

    told = "closed its output and went on" if wait is None else f"ended: {exit_words(wait)}"
    return InvocationError(
        f"the host {told}",
        code="host_crashed",
        fix="see what the adapter printed on standard error, and the run record for what ended it",
        stage=Stage.INVOKE,
        retryable=True,
    )


def _protocol_error(why: str) -> InvocationError:
    return InvocationError(
        f"{why}; the host was ended",
        code="protocol_error",
        fix="an adapter answers each line with one JSON line on standard output, and prints to standard error alone",
        stage=Stage.INVOKE,
    )


def _session_of(artifacts: Path | None, recorder: Recorder | None) -> RecordedSession | None:
    if artifacts is None or recorder is None:
        return None
    return RecordedSession(artifacts, files=recorder.files, clock=recorder.clock)
